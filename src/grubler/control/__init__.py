"""Actuators, on independent and dependent joints."""
