#include "forward_dynamics.h"
#include <math.h>


/* NaN passes through, unlike C's fmin and fmax. */
static inline double grubler_min(double a, double b) { return a != a || a < b ? a : b; }
static inline double grubler_max(double a, double b) { return a != a || a > b ? a : b; }
static inline double grubler_sign(double a) { return a > 0 ? (double)1 : a < 0 ? (double)-1 : a; }

void forward_dynamics(const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict out) {
  (void)q;
  (void)v;
  (void)tau;
  const double s1 = sin(q[2]);
  const double s3 = 0.5 * s1;
  const double s5 = sin(q[1]);
  const double s7 = sin(q[0]);
  const double s8 = cos(q[0]);
  const double s9 = s8 * s5;
  const double s10 = s8 * s3;
  const double s11 = cos(q[1]);
  const double s12 = s7*s11 + s9;
  const double s13 = s1 * s12;
  const double s14 = s8 * s11;
  const double s15 = s14 - s5*s7;
  const double s16 = cos(q[2]);
  const double s17 = s12 * s16;
  const double s18 = s17 - s1*s15;
  const double s19 = s16*s15 + s13;
  const double s20 = 0.5 * s19;
  const double s21 = 0.5 * s18;
  const double s23 = 1.0 / s21;
  const double s24 = s20 * s23;
  const double s26 = 0.5*s16 + 1.0;
  const double s27 = s10 - s7*s26;
  const double s28 = s8 * s26;
  const double s29 = s7*s3 + s28;
  const double s31 = (-0.5) + s29;
  const double s32 = s11 * s27;
  const double s33 = s32 - s5*s31;
  const double s34 = s5*s29 - s32;
  const double s35 = s5 * s27;
  const double s36 = s11*s31 + s35;
  const double s37 = s11*s29 + s35;
  const double s38 = s24*s34 - s37;
  const double s40 = s27 * v[0];
  const double s41 = s24*s33 + s36;
  const double s42 = 1.0 / s41;
  const double s43 = s38 * s42;
  const double s44 = s33*s43 - s34;
  const double s45 = s23 * s44;
  const double s46 = s45 * v[0];
  const double s47 = 0.5 * s46;
  const double s48 = s46 * s47;
  const double s49 = s1 * s48;
  const double s50 = s16 * s48;
  const double s51 = s16 * s47;
  const double s52 = s1 * s47;
  const double s53 = s7 * s52;
  const double s54 = s8*s51 + s53;
  const double s55 = s29*v[0] + s54;
  const double s56 = s54 + s55;
  const double s57 = s8 * s52;
  const double s58 = s57 - s7*s51;
  const double s59 = s40 + s58;
  const double s60 = s58 + s59;
  const double s61 = s5 * s59;
  const double s62 = s11*s55 + s61;
  const double s63 = s11 * s59;
  const double s64 = s63 - s5*s55;
  const double s65 = s8 * s50;
  const double s66 = s7*s49 + s65;
  const double s67 = v[0]*s56 + s66;
  const double s68 = s7 * s50;
  const double s69 = s68 - s8*s49;
  const double s70 = s69 - v[0]*s60;
  const double s71 = s5 * s70;
  const double s72 = s71 - s11*s67;
  const double s74 = 0.042673 * s45;
  const double s75 = s43 * v[0];
  const double s76 = s36*s75 + s62;
  const double s77 = s76 + s62;
  const double s78 = s72 - s75*s77;
  const double s80 = 1.0 + s43;
  const double s81 = s80 * 0.042673;
  const double s83 = s80*s81 + 0.8676729999999999;
  const double s84 = s45*s74 + s83;
  const double s85 = s33*s75 + s64;
  const double s86 = s85 + s64;
  const double s87 = s75 * s86;
  const double s88 = s87 - s11*s70;
  const double s89 = s88 - s5*s67;
  const double s90 = s24*s78 + s89;
  const double s91 = s42 * s90;
  const double s92 = s33*s91 - s78;
  const double s93 = s23 * s92;
  const double s94 = 0.042673 * s93;
  const double s95 = 0.042673 * s91;
  const double s97 = s80*s95 + tau[0];
  const double s98 = s45*s94 + s97;
  const double s99 = s98 / s84;
  out[0] = s99;
}
