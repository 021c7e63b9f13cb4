import type { KqlCases } from "../cases.test-kit.ts";

export const numbers: KqlCases = {
  "numeric literals": [
    {
      query: "print a = 12, b = 0xf, c = long(-1), d = int(-2), e = 1.0, f = 1e5, g = decimal(1e5), h = decimal(1.25)",
      rows: [{ a: 12, b: 15, c: -1, d: -2, e: 1, f: 100000, g: 100000, h: 1.25 }],
      types: { a: "long", b: "long", c: "long", d: "int", e: "real", f: "real", g: "decimal", h: "decimal" },
    },
    {
      query:
        "print a = long(9223372036854775807), b = long(-9223372036854775808), c = int(2147483647), d = int(-2147483648)",
      rows: [{ a: 9223372036854775807n, b: -9223372036854775808n, c: 2147483647, d: -2147483648 }],
    },
    {
      query:
        "print a = isnan(real(nan)), b = isinf(real(+inf)), c = real(+inf) > 0, d = real(-inf) < 0, e = isnull(real(null))",
      rows: [{ a: true, b: true, c: true, d: true, e: true }],
    },
    { query: "print a = real(nan), b = real(+inf), c = real(-inf)", rows: [{ a: null, b: null, c: null }] },
  ],
  "types of arithmetic": [
    {
      query:
        "print a = 1 + 2, b = int(1) + int(2), c = int(1) + 2, d = 1 + 2.5, e = int(1) * 0.5, f = decimal(1.5) + 1, g = 2.0 - 1",
      rows: [{ a: 3, b: 3, c: 3, d: 3.5, e: 0.5, f: 2.5, g: 1 }],
      types: { a: "long", b: "long", c: "long", d: "real", e: "real", f: "decimal", g: "real" },
    },
    {
      query: "print a = 3.14 + 3.14, b = 0.5 - 0.25, c = 2 * 2, d = -(-3), e = -int(3)",
      rows: [{ a: 6.28, b: 0.25, c: 4, d: 3, e: -3 }],
    },
  ],
  division: [
    {
      query: "print a = 1.0 / 2, b = 1 / 2.0, c = 1 / 2, d = real(1) / 2, e = 4 / 2",
      rows: [{ a: 0.5, b: 0.5, c: 0, d: 0.5, e: 2 }],
      types: { a: "real", b: "real", c: "long", d: "real", e: "long" },
    },
    {
      query: "print a = 7 / 2, b = -7 / 2, c = 7 / -2, d = -7 / -2, e = -1 / 2",
      rows: [{ a: 3, b: -3, c: -3, d: 3, e: 0 }],
    },
    { query: "print a = 1 / 0, b = int(1) / int(0), c = 0 / 0", rows: [{ a: null, b: null, c: null }] },
    {
      query: "print a = isinf(1.0 / 0), b = 1.0 / 0 > 0, c = -1.0 / 0 < 0, d = isnan(0.0 / 0), e = isinf(1 / 0.0)",
      rows: [{ a: true, b: true, c: true, d: true, e: true }],
    },
    { query: "print a = decimal(7) / 2, b = decimal(1) / decimal(4)", rows: [{ a: 3.5, b: 0.25 }] },
    {
      query: "print a = 9007199254740993 / 1, b = 9223372036854775807 / 2",
      rows: [{ a: 9007199254740993n, b: 4611686018427387903n }],
    },
  ],
  modulo: [
    {
      query: "print plusPlus = 14 % 12, minusPlus = -14 % 12, plusMinus = 14 % -12, minusMinus = -14 % -12",
      rows: [{ plusPlus: 2, minusPlus: 10, plusMinus: 2, minusMinus: 10 }],
      types: { plusPlus: "long", minusPlus: "long", plusMinus: "long", minusMinus: "long" },
    },
    { query: "print a = 4 % 2, b = -1 % 3, c = 0 % 5, d = -6 % 3", rows: [{ a: 0, b: 2, c: 0, d: 0 }] },
    { query: "print a = 5.5 % 2, b = -5.5 % 2, c = 5.5 % -2", rows: [{ a: 1.5, b: 0.5, c: 1.5 }] },
    { query: "print a = 5 % 0, b = long(null) % 2, c = 2 % long(null)", rows: [{ a: null, b: null, c: null }] },
    { query: "print a = -9223372036854775807 % 10", rows: [{ a: 3 }] },
  ],
  overflow: [
    {
      query:
        "print a = 9223372036854775807 + 1, b = long(-9223372036854775808) - 1, c = 4611686018427387904 * 2, d = 4611686018427387904 * 4",
      rows: [{ a: -9223372036854775808n, b: 9223372036854775807n, c: -9223372036854775808n, d: 0 }],
    },
    {
      query: "print a = int(2147483647) + int(1), b = int(2147483647) * int(2)",
      rows: [{ a: 2147483648, b: 4294967294 }],
      types: { a: "long", b: "long" },
    },
    {
      query: "print a = isinf(1e308 * 10), b = -(long(-9223372036854775808))",
      rows: [{ a: true, b: -9223372036854775808n }],
    },
  ],
  "comparison of numbers": [
    {
      query:
        "print a = 1 < 10, b = 0.23 > 0.22, c = 1 == 1, d = 1 != 0, e = 4 <= 5, f = 5 >= 4, g = 1 == 1.0, h = int(1) == 1",
      rows: [{ a: true, b: true, c: true, d: true, e: true, f: true, g: true, h: true }],
    },
    {
      query: "print a = 9007199254740993 == 9007199254740992, b = 2 in (1, 2, 3), c = 5 !in (1, 2)",
      rows: [{ a: false, b: true, c: true }],
    },
  ],
  "bin() and floor() of numbers": [
    {
      query: "print a = bin(4.5, 1), b = bin(7, 3), c = floor(4.5, 1), d = bin(2.15, 1), e = bin(6, 2)",
      rows: [{ a: 4, b: 6, c: 4, d: 2, e: 6 }],
      types: { a: "real", b: "long", c: "real", d: "real", e: "long" },
    },
    {
      query:
        "print a = bin(-4.5, 1), b = bin(-7, 3), c = bin(-6, 3), d = bin(-1, 10), e = bin(-0.5, 0.25), f = bin(int(-7), int(3))",
      rows: [{ a: -5, b: -9, c: -6, d: -10, e: -0.5, f: -9 }],
    },
    {
      query: "print a = bin(7, 2.5), b = bin(int(7), 2), c = bin(5.5, 2)",
      rows: [{ a: 5, b: 6, c: 4 }],
      types: { a: "real", b: "long", c: "real" },
    },
    {
      query:
        "print a = bin(7, -3), b = bin(long(null), 3), c = bin(7, long(null)), d = bin(7, 0), e = bin(real(null), 1.0)",
      rows: [{ a: null, b: null, c: null, d: null, e: null }],
    },
  ],
  "bin_at() of numbers": [
    {
      query: "print a = bin_at(0x7f, decimal(null), decimal(1.5)), b = bin_at(decimal(5), decimal(2), decimal(null))",
      rows: [{ a: null, b: null }],
      types: { a: "decimal", b: "decimal" },
    },
    {
      query: "print a = bin_at(6.5, 2.5, 7), b = bin_at(10, 3, 1), c = bin_at(0, 3, 1), d = bin_at(-4, 5, 2)",
      rows: [{ a: 4.5, b: 10, c: -2, d: -8 }],
    },
  ],
  rounding: [
    {
      query: "print c1 = ceiling(-1.1), c2 = ceiling(0), c3 = ceiling(0.9), c4 = ceiling(real(null))",
      rows: [{ c1: -1, c2: 0, c3: 1, c4: null }],
    },
    {
      query:
        "print a = round(2.98765, 3), b = round(2.15, 1), c = round(2.15), d = round(-50.55, -2), e = round(21.5, -1), f = round(5)",
      rows: [{ a: 2.988, b: 2.2, c: 2, d: -100, e: 20, f: 5 }],
      types: { a: "real", b: "real", c: "real", d: "real", e: "real", f: "long" },
    },
    {
      query: "print a = round(real(null)), b = round(1.26, 1), c = round(-1.26, 1)",
      rows: [{ a: null, b: 1.3, c: -1.3 }],
    },
    {
      query: "print s1 = sign(-42), s2 = sign(0), s3 = sign(11.2), s4 = sign(real(null))",
      rows: [{ s1: -1, s2: 0, s3: 1, s4: null }],
    },
    {
      query: "print a = abs(-5), b = abs(-5.5), c = abs(int(-5)), d = abs(long(null))",
      rows: [{ a: 5, b: 5.5, c: 5, d: null }],
    },
  ],
  "powers and logarithms": [
    {
      query: "print a = sqrt(4), b = sqrt(-1), c = sqrt(0), d = sqrt(real(null))",
      rows: [{ a: 2, b: null, c: 0, d: null }],
    },
    {
      query: "print result = pow(2, 3), b = pow(2, -1), c = pow(0, 0), d = pow(long(null), 2)",
      rows: [{ result: 8, b: 0.5, c: 1, d: null }],
      types: { result: "real", b: "real", c: "real", d: "real" },
    },
    {
      query: "print a = round(exp(2), 6), b = exp2(3), c = exp10(2), d = exp(0), e = exp(real(null))",
      rows: [{ a: 7.389056, b: 8, c: 100, d: 1, e: null }],
    },
    {
      query:
        "print a = round(log(5), 12), b = round(log2(5), 12), c = round(log10(5), 12), d = log2(8), e = log10(1000), f = log(1)",
      rows: [{ a: 1.609437912434, b: 2.321928094887, c: 0.698970004336, d: 3, e: 3, f: 0 }],
    },
    {
      query:
        "print a = log(-1), b = log2(-1), c = log10(-1), d = log(real(null)), e = isnull(log(-1)), f = isnull(sqrt(-1))",
      rows: [{ a: null, b: null, c: null, d: null, e: true, f: true }],
    },
    {
      query: "print a = gamma(5), b = round(loggamma(5), 12), c = round(gamma(0.5), 9), d = round(loggamma(0.5), 9)",
      rows: [{ a: 24, b: 3.178053830348, c: 1.772453851, d: 0.572364943 }],
    },
  ],
  trigonometry: [
    {
      query: "print a = round(sin(1), 12), b = round(cot(1), 12), c = cos(0), d = tan(0), e = round(cos(pi()), 12)",
      rows: [{ a: 0.841470984808, b: 0.642092615934, c: 1, d: 0, e: -1 }],
    },
    {
      query: "print a = round(atan2(1, 1), 12), b = atan2(0, -1) / pi(), c = round(atan2(-1, 0), 12)",
      rows: [{ a: 0.785398163397, b: 1, c: -1.570796326795 }],
    },
    {
      query:
        "print a = asin(0), b = acos(1), c = atan(1) * 4 / pi(), d = asin(1) * 2 / pi(), e = isnan(acos(2)), f = isnan(asin(-1.5))",
      rows: [{ a: 0, b: 0, c: 1, d: 1, e: true, f: true }],
    },
    {
      query: "print degrees0 = degrees(pi()/4), degrees1 = degrees(pi()*1.5), degrees2 = degrees(0)",
      rows: [{ degrees0: 45, degrees1: 270, degrees2: 0 }],
    },
    {
      query:
        "print radians0 = round(radians(90), 12), radians1 = radians(180) / pi(), radians2 = round(radians(360), 12), p = round(pi() * 1000, 4)",
      rows: [{ radians0: 1.570796326795, radians1: 1, radians2: 6.28318530718, p: 3141.5927 }],
    },
    {
      query: "print a = sin(real(null)), b = atan2(real(null), 1), c = degrees(real(null))",
      rows: [{ a: null, b: null, c: null }],
    },
  ],
  "rand()": [
    {
      query:
        "range x from 1 to 100 step 1 | extend r = rand(), n = rand(3) | summarize a = countif(r >= 0 and r < 1), b = countif(n in (0.0, 1.0, 2.0))",
      rows: [{ a: 100, b: 100 }],
    },
    { query: "range x from 1 to 100 step 1 | extend r = rand() | summarize a = dcount(r) > 90", rows: [{ a: true }] },
  ],
  "isnan(), isinf() and isfinite()": [
    {
      query: "range x from -1 to 1 step 1 | extend y = (-1*x) | extend div = 1.0*x/y | project x, isnan=isnan(div)",
      rows: [
        { x: -1, isnan: false },
        { x: 0, isnan: true },
        { x: 1, isnan: false },
      ],
    },
    {
      query:
        "range x from -1 to 1 step 1 | extend y = 0.0 | extend div = 1.0*x/y | project x, isinf=isinf(div), isfinite=isfinite(div)",
      rows: [
        { x: -1, isinf: true, isfinite: false },
        { x: 0, isinf: false, isfinite: false },
        { x: 1, isinf: true, isfinite: false },
      ],
    },
    {
      query: "print a = isnan(1), b = isinf(1), c = isfinite(1), d = isfinite(1.5)",
      rows: [{ a: false, b: false, c: true, d: true }],
    },
  ],
  "max_of() and min_of()": [
    {
      query: "print result = max_of(10, 1, -3, 17), least = min_of(10, 1, -3, 17), mixed = max_of(1, 2.5)",
      rows: [{ result: 17, least: -3, mixed: 2.5 }],
      types: { result: "long", least: "long", mixed: "real" },
    },
    {
      query:
        "datatable (A: int, B: int)[1, 6, 8, 1, int(null), 2, 1, int(null), int(null), int(null)] | project x = max_of(A, B)",
      rows: [{ x: 6 }, { x: 8 }, { x: 2 }, { x: 1 }, { x: null }],
    },
    {
      query:
        "datatable (A: int, B: int)[5, 2, 10, 1, int(null), 3, 1, int(null), int(null), int(null)] | project x = min_of(A, B)",
      rows: [{ x: 2 }, { x: 1 }, { x: 3 }, { x: 1 }, { x: null }],
    },
    {
      query:
        "print maxDate = max_of(datetime(2024-12-15 07:15:22), datetime(2024-12-15 07:15:24)), t = min_of(1h, 90m), s = max_of('a', 'B')",
      rows: [{ maxDate: "2024-12-15T07:15:24Z", t: "01:00:00", s: "a" }],
    },
  ],
  "iff() and case()": [
    {
      query:
        "print a = iff(true, 1, 2), b = iif(false, 'x', 'y'), c = iff(bool(null), 'x', 'y'), d = iff(1 == 1, 1, 2.5)",
      rows: [{ a: 1, b: "y", c: "y", d: 1 }],
      types: { a: "long", b: "string", c: "string", d: "real" },
    },
    {
      query: 'range Size from 1 to 15 step 2 | extend bucket = case(Size <= 3, "Small", Size <= 10, "Medium", "Large")',
      rows: [
        { Size: 1, bucket: "Small" },
        { Size: 3, bucket: "Small" },
        { Size: 5, bucket: "Medium" },
        { Size: 7, bucket: "Medium" },
        { Size: 9, bucket: "Medium" },
        { Size: 11, bucket: "Large" },
        { Size: 13, bucket: "Large" },
        { Size: 15, bucket: "Large" },
      ],
    },
    {
      query: "print a = case(bool(null), 1, false, 2, 3), b = case(true, datetime(null), now())",
      rows: [{ a: 3, b: null }],
    },
  ],
  "coalesce()": [
    {
      query: 'print result = coalesce(tolong("not a number"), tolong("42"), 33)',
      rows: [{ result: 42 }],
      types: { result: "long" },
    },
    {
      query:
        "print a = coalesce('', 'x'), b = coalesce('', ''), c = coalesce(long(null), 1), d = coalesce(real(null), real(null))",
      rows: [{ a: "x", b: "", c: 1, d: null }],
    },
    {
      query:
        "print a = coalesce(datetime(null), datetime(2020-01-01)), b = coalesce(false, true), c = coalesce(timespan(null), 1h)",
      rows: [{ a: "2020-01-01T00:00:00Z", b: false, c: "01:00:00" }],
    },
  ],
  bits: [
    {
      query:
        "print a = binary_and(6, 3), b = binary_or(6, 3), c = binary_xor(6, 3), d = binary_not(100), e = binary_and(-1, 255)",
      rows: [{ a: 2, b: 7, c: 5, d: -101, e: 255 }],
      types: { a: "long", b: "long", c: "long", d: "long", e: "long" },
    },
    {
      query:
        "print a = binary_shift_left(1, 2), b = binary_shift_left(1, 64), c = binary_shift_left(1, 65), d = binary_shift_left(1, -1), e = binary_shift_left(1, 63)",
      rows: [{ a: 4, b: 1, c: 2, d: null, e: -9223372036854775808n }],
    },
    {
      query:
        "print a = binary_shift_right(1, 2), b = binary_shift_right(8, 3), c = binary_shift_right(8, -1), d = binary_shift_right(8, 64), e = binary_shift_right(-8, 1)",
      rows: [{ a: 0, b: 1, c: null, d: 8, e: -4 }],
    },
    {
      query: "print a = binary_and(long(null), 1), b = binary_not(long(null)), c = binary_shift_left(long(null), 1)",
      rows: [{ a: null, b: null, c: null }],
    },
    {
      query:
        "print ones = bitset_count_ones(42), b = bitset_count_ones(0), c = bitset_count_ones(-1), d = bitset_count_ones(long(null))",
      rows: [{ ones: 3, b: 0, c: 64, d: null }],
    },
  ],
  "tohex()": [
    {
      query: "print a = tohex(256), b = tohex(-256), c = tohex(toint(-256), 8), d = tohex(256, 8), e = tohex(256, 2)",
      rows: [{ a: "100", b: "ffffffffffffff00", c: "ffffff00", d: "00000100", e: "100" }],
    },
    {
      query: "print a = tohex(0), b = tohex(255, 20), c = tohex(toint(-1)), d = tohex(long(null))",
      rows: [{ a: "0", b: "00000000000000ff", c: "ffffffff", d: "" }],
    },
  ],
  "statistical functions": [
    {
      query: "range x from -3 to 3 step 1 | project x, e = round(erf(x), 12)",
      rows: [
        { x: -3, e: -0.999977909503 },
        { x: -2, e: -0.995322265019 },
        { x: -1, e: -0.84270079295 },
        { x: 0, e: 0 },
        { x: 1, e: 0.84270079295 },
        { x: 2, e: 0.995322265019 },
        { x: 3, e: 0.999977909503 },
      ],
    },
    {
      query: "range x from -1 to 3 step 1 | project x, e = round(erfc(x), 12)",
      rows: [
        { x: -1, e: 1.84270079295 },
        { x: 0, e: 1 },
        { x: 1, e: 0.15729920705 },
        { x: 2, e: 0.004677734981 },
        { x: 3, e: 0.000022090497 },
      ],
    },
    { query: "print x = round(erfc(3) * 1e5, 9)", rows: [{ x: 2.2090497 }] },
    {
      query:
        "datatable(x:double, alpha:double, beta:double)[0.5, 10.0, 20.0, 1.5, 10.0, 20.0, double(-10), 10.0, 20.0, 0.1, double(-1.0), 20.0] | project r = round(beta_pdf(x, alpha, beta), 12), n = isnan(beta_pdf(x, alpha, beta))",
      rows: [
        { r: 0.746176019311, n: false },
        { r: null, n: true },
        { r: null, n: true },
        { r: null, n: true },
      ],
    },
    {
      query:
        "datatable(x:double, alpha:double, beta:double)[0.9, 10.0, 20.0, 1.5, 10.0, 20.0, double(-10), 10.0, 20.0, 0.1, double(-1.0), 20.0] | project r = round(beta_cdf(x, alpha, beta), 12), n = isnan(beta_cdf(x, alpha, beta))",
      rows: [
        { r: 1, n: false },
        { r: null, n: true },
        { r: null, n: true },
        { r: null, n: true },
      ],
    },
    {
      query:
        "print a = round(beta_cdf(0.226415022388749, 10.0, 20.0), 12), b = round(beta_cdf(0.5, 3, 3), 12), c = beta_cdf(0, 2, 3), d = beta_cdf(1, 2, 3), e = round(beta_cdf(0.25, 1, 1), 12)",
      rows: [{ a: 0.1, b: 0.5, c: 0, d: 1, e: 0.25 }],
    },
    {
      // From the example of the reference: 0.021.
      query:
        "print s1 = dynamic([27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4]), s2 = dynamic([27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4]) | mv-expand s1 to typeof(double), s2 to typeof(double) | summarize m1=avg(s1), v1=variance(s1), c1=count(), m2=avg(s2), v2=variance(s2), c2=count() | project p = round(welch_test(m1,v1,c1,m2,v2,c2), 3)",
      rows: [{ p: 0.021 }],
    },
  ],
  "conversions of numbers": [
    {
      query:
        'print a = toint("123"), b = toint(2.3), c = toint(-2.7), d = toint("x"), e = toint(2147483648), f = toint(long(null))',
      rows: [{ a: 123, b: 2, c: -2, d: null, e: null, f: null }],
      types: { a: "int", b: "int", c: "int", d: "int", e: "int", f: "int" },
    },
    {
      query:
        'print a = tolong("123"), b = tolong(1.9), c = tolong("9223372036854775807"), d = tolong("9223372036854775808"), e = tolong(true), f = tolong("")',
      rows: [{ a: 123, b: 1, c: 9223372036854775807n, d: null, e: 1, f: null }],
    },
    {
      query: 'print a = toreal("123.4"), b = todouble(7), c = toreal("x"), d = toreal("1e3")',
      rows: [{ a: 123.4, b: 7, c: null, d: 1000 }],
    },
    {
      query: 'print a = todecimal("123.45678") == decimal(123.45678), b = todecimal("x")',
      rows: [{ a: true, b: null }],
    },
    {
      query:
        'print a = tobool("true"), b = tobool("false"), c = tobool(1), d = tobool(123), e = tobool(0), f = tobool("x")',
      rows: [{ a: true, b: false, c: true, d: true, e: false, f: null }],
    },
  ],
};
