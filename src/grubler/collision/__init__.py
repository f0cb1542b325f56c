"""Contact's geometry: which points of a mechanism may touch, and how far apart they are.

shapes      spheres, capsules, boxes, ... on bodies            mechanism/geometry.py, colliders.py
plan        which of them may meet, with their coefficients    contacts.py, choice.py, ground.py
points      gap, place and normal of each, by closed forms     candidates.py, pairs.py, on_ground.py
"""

from .candidates import Candidates as Candidates
from .candidates import check_plan as check_plan
from .candidates import contact_candidates as contact_candidates
from .contacts import ContactPair as ContactPair
from .contacts import ContactPoint as ContactPoint
from .contacts import Contacts as Contacts
from .contacts import ContactWarning as ContactWarning
from .convex import ConvexPairs as ConvexPairs
