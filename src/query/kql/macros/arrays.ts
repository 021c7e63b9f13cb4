/** Macros over arrays: lists of JSON, whose nulls are NULL (`kql_list`). What is no array makes null. */
export const ARRAY_MACROS: Readonly<Record<string, string>> = {
  // A place in a list of `n` that may be counted from its end, kept within it.
  kql_place: "(i, n) AS least(greatest(CASE WHEN i < 0 THEN n + i ELSE i END, 0), n)",
  kql_slice: `(value, low, high) AS list_transform([{'l': kql_list(value), 'a': low, 'b': high}],
    lambda p: CASE WHEN p.l IS NOT NULL THEN to_json(p.l[kql_place(p.a, len(p.l)) + 1
      : CASE WHEN p.b < 0 THEN greatest(p.b + len(p.l) + 1, 0) ELSE least(p.b, len(p.l)) + 1 END]) END)[1]`,
  kql_split: `(value, places) AS list_transform([{'l': kql_list(value), 'i': places}], lambda p: to_json(list_transform(
    range(0, len(p.i) + 1), lambda k: p.l[CASE WHEN k = 0 THEN 0 ELSE kql_place(p.i[k], len(p.l)) END + 1
      : CASE WHEN k = len(p.i) THEN len(p.l) ELSE kql_place(p.i[k + 1], len(p.l)) END])))[1]`,
  kql_rotate: `(value, n) AS list_transform([{'l': kql_list(value), 'n': n}], lambda p: CASE WHEN p.l IS NULL THEN NULL WHEN len(p.l) = 0
    THEN to_json(p.l) ELSE to_json(list_concat(p.l[(p.n % len(p.l) + len(p.l)) % len(p.l) + 1 :],
      p.l[: (p.n % len(p.l) + len(p.l)) % len(p.l)])) END)[1]`,
  // To the left, or to the right where \`n\` is negative.
  kql_shift: `(value, n, filler) AS list_transform([{'l': kql_list(value), 'n': greatest(least(n, 2000000000), -2000000000), 'f': filler}], lambda p: to_json(
    list_transform(range(1, len(p.l) + 1), lambda i: CASE WHEN i + p.n BETWEEN 1 AND len(p.l) THEN p.l[i + p.n] ELSE p.f END)))[1]`,
  // Empty strings among strings, else null.
  kql_filler: `(value) AS list_transform([list_filter(kql_list(value), lambda v: v IS NOT NULL)], lambda l: CASE
    WHEN len(l) > 0 AND len(list_filter(l, lambda v: json_type(v) <> 'VARCHAR')) = 0 THEN CAST('""' AS JSON) END)[1]`,
  kql_reverse: "(value) AS to_json(list_reverse(kql_list(value)))",
  kql_concat: "(lists) AS to_json(flatten(kql_all(lists)))",
  kql_iff: `(value, yes, no) AS list_transform([{'l': kql_list(value), 'y': yes, 'n': no}], lambda p: to_json(list_transform(
    p.l, lambda v, i: CASE
      WHEN v IS NULL OR json_type(v) NOT IN ('BOOLEAN', 'BIGINT', 'UBIGINT', 'DOUBLE') THEN NULL
      WHEN kql_bool_in(json_extract_string(v, '$')) THEN kql_nth(p.y, i) ELSE kql_nth(p.n, i) END)))[1]`,
  // An element of an array, or the value itself where it is none.
  kql_nth: "(value, i) AS CASE WHEN json_type(value) = 'ARRAY' THEN kql_element(value, i - 1) ELSE value END",
  kql_index_of: `(value, item, start, length, occurrence) AS list_transform([{'l': kql_list(value), 'v': item, 's': start,
      'n': length, 'o': occurrence}],
    lambda p: CASE WHEN p.l IS NULL OR p.o < 0 OR p.n < -1 THEN NULL ELSE coalesce(list_filter(
      range(kql_place(p.s, len(p.l)), CASE WHEN p.n = -1 THEN len(p.l)
        ELSE least(kql_place(p.s, len(p.l)) + least(p.n, len(p.l)), len(p.l)) END),
      lambda i: p.l[i + 1] = p.v)[greatest(p.o, 1)], -1) END)[1]`,
  kql_zip: `(lists) AS list_transform([kql_all(lists)], lambda ls: to_json(list_transform(
    range(1, list_max(list_transform(ls, lambda l: len(l))) + 1), lambda i: list_transform(ls, lambda l: l[i]))))[1]`,
  kql_repeat: `(value, n) AS list_transform([{'v': value, 'n': n}], lambda p: CASE WHEN p.n >= 0
    THEN to_json(list_transform(range(0, least(p.n, 1048576)), lambda i: p.v)) END)[1]`,
  // At most 2^20 values.
  kql_count_long: `(low, high, step) AS CASE
    WHEN low IS NULL OR high IS NULL OR step IS NULL THEN NULL WHEN step = 0 OR (step > 0 AND high < low) OR (step < 0 AND high > low) THEN 0
    ELSE CAST(least((CAST(high AS HUGEINT) - low) // step + 1, 1048576) AS BIGINT) END`,
  kql_series_long: `(low, high, step) AS list_transform([{'a': low, 'b': high, 's': step}], lambda p: list_transform(
    range(0, kql_count_long(p.a, p.b, p.s)), lambda i: p.a + i * p.s))[1]`,
  kql_series_real: `(low, high, step) AS list_transform([{'a': low, 'b': high, 's': step}], lambda p: CASE
    WHEN isfinite((p.b - p.a) / p.s) THEN list_transform(
      range(0, CAST(least(greatest(floor((p.b - p.a) / p.s) + 1, 0), 1048576) AS BIGINT)), lambda i: p.a + i * p.s) END)[1]`,

  // What numbers, strings and other elements are sorted by; NULLs are not there.
  kql_sort_keys: `(list, sign) AS list_filter(list_transform(list, lambda v, i: CASE
    WHEN v IS NULL THEN NULL
    WHEN json_type(v) IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN {'r': 1 * sign, 'n': TRY_CAST(v AS DOUBLE), 't': '', 'i': i * sign}
    WHEN json_type(v) = 'VARCHAR' THEN {'r': 2 * sign, 'n': 0.0::DOUBLE, 't': json_extract_string(v, '$'), 'i': i * sign}
    ELSE {'r': 3 * sign, 'n': 0.0::DOUBLE, 't': '', 'i': i * sign} END), lambda k: k IS NOT NULL)`,
  // The places of the elements in ascending order.
  kql_places_asc: `(value, nulls_last) AS list_transform([{'l': kql_list(value), 'z': nulls_last}],
    lambda p: kql_with_nulls(list_transform(list_sort(kql_sort_keys(p.l, 1)), lambda k: k.i), p.l, p.z))[1]`,
  kql_places_desc: `(value, nulls_last) AS list_transform([{'l': kql_list(value), 'z': nulls_last}],
    lambda p: kql_with_nulls(list_transform(list_sort(kql_sort_keys(p.l, -1), 'DESC'), lambda k: -k.i), p.l, p.z))[1]`,
  kql_with_nulls: `(places, list, nulls_last) AS list_transform(
    [{'p': places, 'e': list_filter(range(1, len(list) + 1), lambda i: list[i] IS NULL), 'z': nulls_last}],
    lambda q: CASE WHEN q.z THEN list_concat(q.p, q.e) ELSE list_concat(q.e, q.p) END)[1]`,
  // Null where the lengths differ.
  kql_in_places: `(value, places) AS list_transform([{'l': kql_list(value), 'p': places}], lambda q: CASE WHEN len(q.l) = len(q.p)
    THEN to_json(list_transform(q.p, lambda i: q.l[i])) END)[1]`,

  // Each value once, where it comes first.
  kql_once: `(list) AS list_transform([list_sort(list_transform(list, lambda v, i: {'v': CAST(v AS VARCHAR), 'i': i}))], lambda s:
    list_transform(list_sort(list_transform(
      list_filter(s, lambda e, i: i = 1 OR s[i - 1].v IS DISTINCT FROM e.v), lambda e: {'i': e.i, 'v': e.v})), lambda e: CAST(e.v AS JSON)))[1]`,
  kql_holds:
    "(list, item) AS coalesce(list_contains(list_transform(list, lambda x: coalesce(x, 'null')), coalesce(item, 'null')), false)",
  kql_union: "(lists) AS to_json(kql_once(flatten(kql_all(lists))))",
  kql_intersect: `(first, others) AS list_transform([{'l': kql_once(first), 'o': kql_all(others)}], lambda p: CASE WHEN p.o IS NOT NULL THEN to_json(list_filter(p.l,
    lambda v: NOT list_contains(list_transform(p.o, lambda o: kql_holds(o, v)), false))) END)[1]`,
  kql_difference: `(first, others) AS list_transform([{'l': kql_once(first), 'o': kql_all(others)}], lambda p: CASE WHEN p.o IS NOT NULL THEN to_json(list_filter(p.l,
    lambda v: NOT list_contains(list_transform(p.o, lambda o: kql_holds(o, v)), true))) END)[1]`,
  kql_jaccard: `(a, b) AS list_transform([{'a': kql_once(a), 'b': kql_once(b), 'u': kql_once(list_concat(a, b))}],
    lambda p: (len(p.a) + len(p.b) - len(p.u)) / nullif(len(p.u), 0))[1]`,
  kql_set_equals: `(a, b) AS list_transform([{'a': kql_once(a), 'b': kql_once(b), 'u': kql_once(list_concat(a, b))}],
    lambda p: len(p.a) = len(p.u) AND len(p.b) = len(p.u))[1]`,
};
