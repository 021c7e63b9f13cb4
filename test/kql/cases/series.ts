import type { KqlCases } from "../cases.test-kit.ts";

export const series: KqlCases = {
  "element-wise series functions": [
    {
      query:
        "print a = series_abs(dynamic([-6.5,0,8.2])), b = series_sign(dynamic([-6, 0, 8])), c = series_ceiling(dynamic([-1.5,1,2.5])), d = series_floor(dynamic([-1.5,1,2.5]))",
      rows: [{ a: [6.5, 0, 8.2], b: [-1, 0, 1], c: [-1, 1, 3], d: [-2, 1, 2] }],
    },
    {
      query:
        "range x from 1 to 3 step 1 | extend y = x * 2 | extend z = y * 2 | project s1 = pack_array(x,y,z), s2 = pack_array(z, y, x) | project a = series_add(s1, s2), b = series_subtract(s1, s2), c = series_multiply(s1, s2), d = series_divide(s1, s2)",
      rows: [
        { a: [5, 4, 5], b: [-3, 0, 3], c: [4, 4, 4], d: [0.25, 1, 4] },
        { a: [10, 8, 10], b: [-6, 0, 6], c: [16, 16, 16], d: [0.25, 1, 4] },
        { a: [15, 12, 15], b: [-9, 0, 9], c: [36, 36, 36], d: [0.25, 1, 4] },
      ],
    },
    {
      query:
        "print a = series_add(dynamic([1, 'x', 3]), dynamic([1, 2])), b = series_abs(dynamic([-1, 'x', null])), c = series_divide(dynamic([1, 3]), dynamic([2, 2]))",
      rows: [{ a: [2, null, null], b: [1, null, null], c: [0.5, 1.5] }],
    },
    {
      query:
        "print s1 = dynamic([1,2,4]), s2 = dynamic([4,2,1]) | project eq = series_equals(s1, s2), ne = series_not_equals(s1, s2), gt = series_greater(s1, s2), ge = series_greater_equals(s1, s2), lt = series_less(s1, s2), le = series_less_equals(s1, s2)",
      rows: [
        {
          eq: [false, true, false],
          ne: [true, false, true],
          gt: [false, false, true],
          ge: [false, true, true],
          lt: [true, false, false],
          le: [true, true, false],
        },
      ],
    },
    {
      query:
        "print a = series_pow(dynamic([1, 2, 3, 4]), dynamic([1, 2, 3, 0.5])), b = series_log(dynamic([1])), c = series_exp(dynamic([0])), d = series_cos(dynamic([0])), e = series_sin(dynamic([0])), f = series_tan(dynamic([0])), g = series_acos(dynamic([1])), h = series_asin(dynamic([0])), i = series_atan(dynamic([0]))",
      rows: [{ a: [1, 4, 27, 2], b: [0], c: [1], d: [1], e: [0], f: [0], g: [0], h: [0], i: [0] }],
    },
    {
      query:
        "print a = round(todouble(series_log(dynamic([1,2,3]))[2]), 12), b = round(todouble(series_exp(dynamic([1,2,3]))[2]), 9), c = round(todouble(series_acos(dynamic([-1,0,1]))[1]), 12)",
      rows: [{ a: 1.098612288668, b: 20.085536923, c: 1.570796326795 }],
    },
    {
      query:
        "print a = series_equals(dynamic([1, 'x', 3]), dynamic([1, 2])), b = series_greater(dynamic([2, null]), dynamic([1, 1]))",
      rows: [{ a: [true, null, null], b: [true, null] }],
    },
  ],
  "filling of series": [
    {
      query: "print a = series_fill_backward(dynamic([111, null, 36, 41, null, null, 16, 61, 33, null, null]))",
      rows: [{ a: [111, 36, 36, 41, 16, 16, 16, 61, 33, null, null] }],
    },
    {
      query: "print a = series_fill_forward(dynamic([null, null, 36, 41, null, null, 16, 61, 33, null, null]))",
      rows: [{ a: [null, null, 36, 41, 41, 41, 16, 61, 33, 33, 33] }],
    },
    {
      query:
        "print arr = dynamic([111, null, 36, 41, 23, null, 16, 61, 33, null, null]) | project a = series_fill_const(arr, 0.0), b = series_fill_const(arr, -1)",
      rows: [{ a: [111, 0, 36, 41, 23, 0, 16, 61, 33, 0, 0], b: [111, -1, 36, 41, 23, -1, 16, 61, 33, -1, -1] }],
    },
    {
      query:
        "print a = series_fill_const(dynamic([1, -1, 3]), 0, -1), b = series_fill_forward(dynamic([1, 0, 3]), 0), c = series_fill_backward(dynamic([1, 0, 3]), 0)",
      rows: [{ a: [1, 0, 3], b: [1, 1, 3], c: [1, 3, 3] }],
    },
    {
      query:
        "print arr = dynamic([null, 111, null, 36, 41, null, null, 16, 61, 33, null, null]) | project a = series_fill_linear(arr), b = series_fill_linear(arr, double(null), true), c = series_fill_linear(arr, double(null), false)",
      rows: [
        {
          a: [111, 111, 73, 36, 41, 32, 24, 16, 61, 33, 33, 33],
          b: [111, 111, 73, 36, 41, 32, 24, 16, 61, 33, 33, 33],
          c: [null, 111, 73, 36, 41, 32, 24, 16, 61, 33, null, null],
        },
      ],
    },
    {
      query:
        "print a = series_fill_linear(dynamic([null, 111.5, null, 36.5, null])), b = series_fill_linear(dynamic([null, null])), c = series_fill_linear(dynamic([null, null]), double(null), true, 2.75)",
      rows: [{ a: [111.5, 111.5, 74, 36.5, 36.5], b: [0, 0], c: [2.75, 2.75] }],
    },
  ],
  "reductions of series": [
    {
      query:
        "print a = series_sum(dynamic([1,2,3,4])), b = series_product(dynamic([1,2,3,4])), c = series_magnitude(dynamic([3,4])), d = round(series_magnitude(dynamic([1,2,3,4])), 12)",
      rows: [{ a: 10, b: 24, c: 5, d: 5.477225575052 }],
      types: { a: "real", b: "real", c: "real", d: "real" },
    },
    {
      query:
        "range x from 1 to 3 step 1 | extend y = x * 2 | extend z = y * 2 | project s1 = pack_array(x,y,z), s2 = pack_array(z, y, x), x | project a = series_dot_product(s1, s2), b = series_dot_product(s1, x)",
      rows: [
        { a: 12, b: 7 },
        { a: 48, b: 28 },
        { a: 108, b: 63 },
      ],
    },
    {
      query:
        "print a = series_dot_product(dynamic([1, 2, 3]), dynamic([4, 5])), b = series_dot_product(dynamic([]), dynamic([1])), c = series_dot_product(10, dynamic([1, 2, 3]))",
      rows: [{ a: 14, b: null, c: 60 }],
    },
    {
      query:
        "print s1 = dynamic([0.1,0.2,0.1,0.2]), s2 = dynamic([0.11,0.2,0.11,0.21]), s3 = dynamic([1,2,3,4]) | project a = round(series_cosine_similarity(s1, s2), 12), b = round(series_cosine_similarity(s1, s3), 12), c = series_cosine_similarity(dynamic([]), s1)",
      rows: [{ a: 0.999353438255, b: 0.923760430703, c: null }],
    },
    {
      query:
        "range s1 from 1 to 5 step 1 | extend s2 = 2 * s1 | summarize s1 = make_list(s1), s2 = make_list(s2) | project a = round(series_pearson_correlation(s1, s2), 12), b = series_pearson_correlation(s1, dynamic([1, 2]))",
      rows: [{ a: 1, b: null }],
    },
    {
      query:
        "print x=dynamic([23, 46, 23, 87, 4, 8, 3, 75, 2, 56, 13, 75, 32, 16, 29]) | project s=series_stats_dynamic(x) | project a = s.min, b = s.min_idx, c = s.max, d = s.max_idx, e = round(todouble(s.avg), 9), f = round(todouble(s.stdev), 9), g = round(todouble(s.variance), 9), h = s.sum, i = s.len",
      rows: [{ a: 2, b: 8, c: 87, d: 3, e: 32.8, f: 28.503633854, g: 812.457142857, h: 492, i: 15 }],
    },
    {
      query:
        "print x=dynamic([23, 46, 23, 87, 4, 8, 3, 75, 2, 56, 13, 75, 32, 16, 29]) | project series_stats(x) | project series_stats_x_min, series_stats_x_min_idx, series_stats_x_max, series_stats_x_max_idx, a = round(series_stats_x_avg, 9), s = round(series_stats_x_stdev, 9), v = round(series_stats_x_variance, 9)",
      rows: [
        {
          series_stats_x_min: 2,
          series_stats_x_min_idx: 8,
          series_stats_x_max: 87,
          series_stats_x_max_idx: 3,
          a: 32.8,
          s: 28.503633854,
          v: 812.457142857,
        },
      ],
    },
    {
      query:
        "print a = series_stats_dynamic(dynamic([1, null, 3])).avg, b = series_stats_dynamic(dynamic([1, null, 3]), true).avg",
      rows: [{ a: null, b: 2 }],
    },
    {
      query: "print x = dynamic([3, 1, 2]) | extend (mn, i) = series_stats(x) | project x, mn, i",
      rows: [{ x: [3, 1, 2], mn: 1, i: 1 }],
    },
  ],
  "filters of series": [
    {
      query: "print x = series_iir(range(1.0, 4, 1), dynamic([1]), dynamic([1,-1]))",
      rows: [{ x: [1, 3, 6, 10] }],
    },
    {
      query: "print n = array_length(series_iir(range(1.0, 10000, 1), dynamic([1]), dynamic([1,-1])))",
      rows: [{ n: 10_000 }],
    },
    {
      query: "print x = series_iir(range(1.0, 10001, 1), dynamic([1]), dynamic([1,-1]))",
      refused: { code: "execution_error", message: "series_iir takes a series of at most 10000 values" },
    },
  ],
  "refused functions of series": [
    {
      query: "print x = series_fir(dynamic([0, 2]), dynamic([1, -1]))",
      refused: { code: "invalid_query", message: "series_fir" },
    },
    { query: "print x = series_fft(dynamic([1, 2]))", refused: { code: "invalid_query", message: "series_fft" } },
    {
      query: "print x = series_decompose(dynamic([1, 2]))",
      refused: { code: "invalid_query", message: "series_decompose" },
    },
    {
      query: "print x = series_decompose_anomalies(dynamic([1, 2]))",
      refused: { code: "invalid_query", message: "series_decompose_anomalies" },
    },
    {
      query: "print x = series_decompose_forecast(dynamic([1, 2]), 1)",
      refused: { code: "invalid_query", message: "series_decompose_forecast" },
    },
    {
      query: "print x = series_periods_detect(dynamic([1, 2]), 1, 2, 1)",
      refused: { code: "invalid_query", message: "series_periods_detect" },
    },
  ],
};
