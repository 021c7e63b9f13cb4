/** `c0 + x (c1 + x (c2 + …))`. */
function polynomial(x: string, coefficients: readonly number[]): string {
  return coefficients.reduceRight((rest, c) => (rest === "" ? `${c}::DOUBLE` : `(${c}::DOUBLE + ${x} * ${rest})`), "");
}

/** `exp(-x²)` with the square taken apart, so that its last digits are not lost, times a rational function of 1/x². */
function tail(p: readonly number[], q: readonly number[]): string {
  return `exp(-p.z * p.z - 0.5625) * exp((p.z - p.x) * (p.z + p.x)
    + ${polynomial("p.s", p)} / ${polynomial("p.s", q)}) / p.x`;
}

/** Rational approximations of erfc(x) for x ≥ 0 (W. J. Cody; the coefficients are those of the C library of FreeBSD). */
const SMALL = `${polynomial(
  "p.y",
  [
    1.28379167095512558561e-1, -3.2504210724700149937e-1, -2.84817495755985104766e-2, -5.77027029648944159157e-3,
    -2.37630166566501626084e-5,
  ],
)} / ${polynomial(
  "p.y",
  [
    1, 3.97917223959155352819e-1, 6.50222499887672944485e-2, 5.08130628187576562776e-3, 1.32494738004321644526e-4,
    -3.9602282787753681232e-6,
  ],
)}`;

const ERFC = `CASE WHEN p.x < 0.84375 THEN 1 - p.x - p.x * ${SMALL}
  WHEN p.x < 1.25 THEN 1 - 0.845062911510467529297 - ${polynomial(
    "p.w",
    [
      -2.36211856075265944077e-3, 4.14856118683748331666e-1, -3.72207876035701323847e-1, 3.18346619901161753674e-1,
      -1.10894694282396677476e-1, 3.54783043256182359371e-2, -2.166375594868790843e-3,
    ],
  )} / ${polynomial(
    "p.w",
    [
      1, 1.06420880400844228286e-1, 5.40397917702171048937e-1, 7.18286544141962662868e-2, 1.26171219808761642112e-1,
      1.36370839120290507362e-2, 1.1984499846799107417e-2,
    ],
  )}
  WHEN p.x < 2.857142857142857 THEN ${tail(
    [
      -9.86494403484714822705e-3, -6.93858572707181764372e-1, -1.05586262253232909814e1, -6.23753324503260060396e1,
      -1.62396669462573470355e2, -1.84605092906711035994e2, -8.12874355063065934246e1, -9.81432934416914548592,
    ],
    [
      1, 1.96512716674392571292e1, 1.376577541435190426e2, 4.34565877475229228821e2, 6.45387271733267880336e2,
      4.29008140027567833386e2, 1.08635005541779435134e2, 6.57024977031928170135, -6.04244152148580987438e-2,
    ],
  )}
  WHEN p.x < 28 THEN ${tail(
    [
      -9.86494292470009928597e-3, -7.99283237680523006574e-1, -1.77579549177547519889e1, -1.60636384855821916062e2,
      -6.37566443368389627722e2, -1.02509513161107724954e3, -4.83519191608651397019e2,
    ],
    [
      1, 3.03380607434824582924e1, 3.25792512996573918826e2, 1.53672958608443695994e3, 3.19985821950859553908e3,
      2.55305040643316442583e3, 4.74528541206955367215e2, -2.24409524465858183362e1,
    ],
  )}
  WHEN isnan(p.x) THEN p.x ELSE 0 END`;

/** One more factor of the continued fraction of the incomplete beta function (Lentz). */
const LENTZ = `lambda s, e: {'k': e.k, 'd': 1 / kql_not_zero(1 + e.k * s.d), 'c': kql_not_zero(1 + e.k / s.c),
  'f': s.f * kql_not_zero(1 + e.k / s.c) / kql_not_zero(1 + e.k * s.d)}`;

const EVEN = "(m // 2) * (p.b - m // 2) * p.x / ((p.a + m - 1) * (p.a + m))";
const ODD = "-(p.a + m // 2) * (p.a + p.b + m // 2) * p.x / ((p.a + m - 1) * (p.a + m))";

export const STATISTICS_MACROS: Readonly<Record<string, string>> = {
  kql_erfc: `(x) AS list_transform([{'sign': x, 'x': abs(x), 'y': x * x, 'w': abs(x) - 1, 's': 1 / nullif(x * x, 0),
    'z': CAST(CAST(abs(x) AS FLOAT) AS DOUBLE)}],
    lambda p: CASE WHEN p.x IS NULL THEN NULL WHEN p.sign < 0 THEN 2 - ${ERFC} ELSE ${ERFC} END)[1]`,
  kql_erf: `(x) AS list_transform([{'x': x, 'y': x * x, 'c': kql_erfc(x)}], lambda p: CASE WHEN abs(p.x) < 0.84375
    THEN p.x + p.x * ${SMALL} ELSE 1 - p.c END)[1]`,

  kql_not_zero: "(x) AS coalesce(nullif(x, 0), 1e-300)",
  // Converges within the root of its larger argument where x is less than the mean, and is exact to about 11 digits.
  kql_beta_fraction: `(a, b, x) AS list_transform([{'a': a, 'b': b, 'x': x}], lambda p: list_reduce(
    list_transform(range(1, least(8000, 200 + 10 * CAST(ceil(sqrt(greatest(p.a, p.b))) AS BIGINT))), lambda m:
      {'k': CASE WHEN m % 2 = 0 THEN ${EVEN} ELSE ${ODD} END, 'd': 1.0::DOUBLE, 'c': 1.0::DOUBLE, 'f': 1.0::DOUBLE}),
    ${LENTZ}, {'k': 0.0::DOUBLE, 'd': 0.0::DOUBLE, 'c': 1.0::DOUBLE, 'f': 1.0::DOUBLE}).f)[1]`,
  kql_beta_below: `(a, b, x, y) AS exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * ln(x) + b * ln(y))
    / kql_beta_fraction(a, b, x) / a`,
  kql_incomplete_beta: `(a, b, x) AS list_transform([{'a': a, 'b': b, 'x': x}], lambda p: CASE
    WHEN p.x <= 0 THEN 0 WHEN p.x >= 1 THEN 1
    WHEN p.x < (p.a + 1) / (p.a + p.b + 2) THEN kql_beta_below(p.a, p.b, p.x, 1 - p.x)
    ELSE 1 - kql_beta_below(p.b, p.a, 1 - p.x, p.x) END)[1]`,
  kql_beta_cdf: `(x, a, b) AS list_transform([{'x': x, 'a': a, 'b': b}], lambda p: CASE
    WHEN p.x IS NULL OR p.a IS NULL OR p.b IS NULL THEN NULL
    WHEN p.x < 0 OR p.x > 1 OR p.a <= 0 OR p.a > 10000 OR p.b <= 0 OR p.b > 10000 THEN CAST('nan' AS DOUBLE)
    ELSE kql_incomplete_beta(p.a, p.b, p.x) END)[1]`,
  kql_beta_pdf: `(x, a, b) AS list_transform([{'x': x, 'a': a, 'b': b}], lambda p: CASE
    WHEN p.x IS NULL OR p.a IS NULL OR p.b IS NULL THEN NULL
    WHEN p.x <= 0 OR p.x >= 1 OR p.a <= 0 OR p.b <= 0 THEN CAST('nan' AS DOUBLE)
    ELSE exp(lgamma(p.a + p.b) - lgamma(p.a) - lgamma(p.b) + (p.a - 1) * ln(p.x) + (p.b - 1) * ln(1 - p.x)) END)[1]`,
  // Two-sided, by Student's distribution with the degrees of freedom of Welch and Satterthwaite.
  kql_welch_test: `(m1, v1, n1, m2, v2, n2) AS list_transform([{'d': m1 - m2, 'e1': v1 / n1, 'e2': v2 / n2, 'n1': n1, 'n2': n2}],
    lambda w: list_transform([{'t': w.d * w.d / (w.e1 + w.e2),
      'df': (w.e1 + w.e2) * (w.e1 + w.e2) / (w.e1 * w.e1 / (w.n1 - 1) + w.e2 * w.e2 / (w.n2 - 1))}],
      lambda s: kql_incomplete_beta(s.df / 2, 0.5, s.df / (s.df + s.t)))[1])[1]`,
};
