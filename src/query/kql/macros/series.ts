/** What `series_iir` takes at most: each value copies those before it, and so many take a second. */
const LONGEST_FEEDBACK = 10_000;

/** Macros over arrays of numbers. What is no number is NULL. */
export const SERIES_MACROS: Readonly<Record<string, string>> = {
  kql_number: `(v) AS CASE WHEN json_type(v) IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN TRY_CAST(v AS DOUBLE)
    WHEN v IN ('"NaN"', '"Infinity"', '"-Infinity"') THEN CAST(json_extract_string(v, '$') AS DOUBLE) END`,
  kql_whole: "(v) AS CASE WHEN json_type(v) IN ('BIGINT', 'UBIGINT') THEN TRY_CAST(v AS BIGINT) END",
  kql_numbers: "(value) AS list_transform(kql_list(value), lambda v: kql_number(v))",
  // All of them, or NULL where one is no number.
  kql_all_numbers: `(value) AS list_transform([kql_numbers(value)], lambda l: CASE WHEN list_position(
    list_transform(l, lambda x: x IS NULL), true) IS NULL THEN l END)[1]`,
  kql_pairs: `(a, b) AS list_transform([{'a': kql_list(a), 'b': kql_list(b)}], lambda p: list_transform(
    range(1, greatest(len(p.a), len(p.b)) + CASE WHEN p.a IS NULL OR p.b IS NULL THEN NULL ELSE 1 END), lambda i: {'a': p.a[i], 'b': p.b[i]}))[1]`,
  kql_sum:
    "(value) AS list_transform([kql_all_numbers(value)], lambda l: CASE WHEN l IS NOT NULL THEN coalesce(list_sum(l), 0) END)[1]",
  kql_product:
    "(value) AS list_transform([kql_all_numbers(value)], lambda l: CASE WHEN l IS NOT NULL THEN coalesce(list_product(l), 1) END)[1]",
  // Of what is a number in both, as far as the shorter one reaches; null where one is empty.
  kql_dot: `(a, b) AS list_transform([{'a': kql_numbers(a), 'b': kql_numbers(b)}], lambda p: CASE WHEN len(p.a) > 0 AND len(p.b) > 0
    THEN coalesce(list_sum(list_transform(range(1, least(len(p.a), len(p.b)) + 1), lambda i: p.a[i] * p.b[i])), 0) END)[1]`,
  kql_scaled: `(value, factor) AS list_transform([{'l': kql_numbers(value), 'n': factor}], lambda p: CASE WHEN len(p.l) > 0
    THEN list_sum(p.l) * p.n END)[1]`,
  kql_cut: "(value, n) AS to_json(kql_list(value)[: n])",
  kql_cosine: `(a, b, ma, mb) AS list_transform([{'d': kql_dot(a, b), 'a': ma, 'b': mb}], lambda p: p.d / (p.a * p.b))[1]`,
  kql_pearson: `(a, b) AS list_transform([{'a': kql_all_numbers(a), 'b': kql_all_numbers(b)}], lambda p: CASE WHEN len(p.a) = len(p.b)
    THEN list_transform([{'a': p.a, 'b': p.b, 'ma': list_avg(p.a), 'mb': list_avg(p.b)}], lambda q:
      list_sum(list_transform(q.a, lambda x, i: (x - q.ma) * (q.b[i] - q.mb)))
        / sqrt(list_sum(list_transform(q.a, lambda x: (x - q.ma) * (x - q.ma)))
             * list_sum(list_transform(q.b, lambda x: (x - q.mb) * (x - q.mb)))))[1] END)[1]`,
  kql_finite: "(x) AS CASE WHEN isfinite(x) THEN x END",
  kql_stats: `(value, lenient) AS list_transform([{'l': list_transform(kql_numbers(value), lambda x: CASE WHEN isfinite(x) THEN x END), 'z': lenient}],
    lambda p: CASE WHEN p.l IS NULL OR (NOT p.z AND list_count(p.l) < len(p.l)) OR list_count(p.l) = 0 THEN NULL ELSE {
      'min': list_min(p.l), 'min_idx': list_position(p.l, list_min(p.l)) - 1,
      'max': list_max(p.l), 'max_idx': list_position(p.l, list_max(p.l)) - 1,
      'avg': kql_finite(list_avg(p.l)), 'stdev': kql_finite(coalesce(TRY(list_stddev_samp(p.l)), 0)),
      'variance': kql_finite(coalesce(TRY(list_var_samp(p.l)), 0)), 'sum': kql_finite(list_sum(p.l)), 'len': len(p.l)} END)[1]`,

  // Where elements are missing: null, or what equals the placeholder.
  kql_gaps: `(value, placeholder) AS list_transform([{'l': kql_list(value), 'z': placeholder}], lambda p: list_transform(p.l, lambda v: CASE
    WHEN p.z IS NULL THEN v WHEN v = p.z OR kql_number(v) = kql_number(p.z) THEN NULL ELSE coalesce(v, 'null') END))[1]`,
  kql_fill_const: `(gaps, item) AS list_transform([{'l': gaps, 'v': item}], lambda p: to_json(list_transform(p.l, lambda v: coalesce(v, p.v))))[1]`,
  // The places of what is there, and for each place how many of them are not after it.
  kql_places:
    "(gaps) AS list_filter(list_transform(gaps, lambda v, i: CASE WHEN v IS NOT NULL THEN i END), lambda i: i IS NOT NULL)",
  kql_fill_forward: `(gaps, missing) AS list_transform([{'l': gaps, 'm': missing}], lambda p: to_json(list_transform(p.l, lambda v, i:
    coalesce(v, list_last(list_filter(p.l[: i], lambda x: x IS NOT NULL)), p.m))))[1]`,
  kql_fill_backward: `(gaps, missing) AS list_transform([{'l': gaps, 'm': missing}], lambda p: to_json(list_transform(p.l, lambda v, i:
    coalesce(v, list_filter(p.l[i :], lambda x: x IS NOT NULL)[1], p.m))))[1]`,
  kql_fill_linear: `(gaps, edges, missing, constant) AS list_transform([{'l': gaps, 'p': kql_places(gaps), 'e': edges, 'm': missing, 'c': constant}],
    lambda p: to_json(list_transform(p.l, lambda v, i: CASE WHEN v IS NOT NULL THEN v WHEN len(p.p) = 0 THEN p.c ELSE list_transform(
      [{'a': list_last(list_filter(p.p, lambda k: k < i)), 'b': list_filter(p.p, lambda k: k > i)[1]}], lambda g: CASE
        WHEN g.a IS NULL THEN CASE WHEN p.e THEN p.l[g.b] ELSE p.m END
        WHEN g.b IS NULL THEN CASE WHEN p.e THEN p.l[g.a] ELSE p.m END
        ELSE kql_between(p.l[g.a], p.l[g.b], (i - g.a) / (g.b - g.a), len(list_filter(p.l, lambda x: x IS NOT NULL AND kql_whole(x) IS NULL)) = 0) END)[1] END)))[1]`,
  kql_between: `(a, b, share, is_whole) AS CASE
    WHEN is_whole THEN to_json(CAST(trunc(kql_number(a) + (kql_number(b) - kql_number(a)) * share) AS BIGINT))
    ELSE kql_real_json(kql_number(a) + (kql_number(b) - kql_number(a)) * share) END`,

  kql_iir: `(value, b, a) AS list_transform([{'x': kql_all_numbers(value), 'b': kql_all_numbers(b), 'a': kql_all_numbers(a)}], lambda p:
    CASE WHEN len(p.x) > ${LONGEST_FEEDBACK} THEN error('series_iir takes a series of at most ${LONGEST_FEEDBACK} values')
    ELSE to_json(list_transform(list_reduce(list_transform(range(1, len(p.x) + 1), lambda i: [i::DOUBLE]), lambda y, i: list_append(y,
      (coalesce(list_sum(list_transform(p.b, lambda c, k: c * coalesce(p.x[CAST(i[1] AS BIGINT) - k + 1], 0))), 0)
        - coalesce(list_sum(list_transform(p.a[2 :], lambda c, k: c * coalesce(y[len(y) - k + 1], 0))), 0)) / p.a[1]), CAST([] AS DOUBLE[])),
      lambda v: kql_real_json(v))) END)[1]`,
};
