/**
 * Macros over dynamic values (JSON). A JSON null is NULL, also as an element of a list. See `time.ts` for why lists and
 * lambdas hold what is mentioned more than once.
 */
export const DYNAMIC_MACROS: Readonly<Record<string, string>> = {
  kql_not_null: "(value) AS list_filter([value], lambda v: v <> 'null')[1]",
  kql_pointer: "(name) AS '/' || replace(replace(name, '~', '~0'), '/', '~1')",
  kql_member: `(value, name) AS list_transform([{'v': value, 'n': name}], lambda p: CASE WHEN json_type(p.v) = 'OBJECT'
    THEN kql_not_null(json_extract(p.v, kql_pointer(p.n))) END)[1]`,
  kql_element: `(value, i) AS list_transform([{'v': value, 'i': i}], lambda p: kql_not_null(json_extract(p.v,
    CASE WHEN p.i < 0 THEN '$[#' || p.i || ']' ELSE '$[' || p.i || ']' END)))[1]`,
  kql_element_or_member: `(value, key) AS list_transform([{'v': value, 'k': key}], lambda p:
    CASE WHEN json_type(p.k) = 'VARCHAR' THEN kql_member(p.v, kql_dynamic_text(p.k))
      ELSE kql_element(p.v, kql_dynamic_long(p.k)) END)[1]`,
  kql_dynamic_text: "(value) AS json_extract_string(value, '$')",
  kql_canonical: "(value) AS kql_dynamic_text(CAST(variant_normalize(CAST(value AS VARIANT)) AS JSON))",
  kql_dynamic_long: "(value) AS kql_long_in(json_extract_string(value, '$'))",
  kql_long_in: `(t) AS list_transform([t], lambda v: CASE WHEN v = 'true' THEN 1 WHEN v = 'false' THEN 0
    WHEN contains(v, '.') OR contains(v, 'e') THEN TRY_CAST(trunc(TRY_CAST(v AS DOUBLE)) AS BIGINT)
    ELSE TRY_CAST(v AS BIGINT) END)[1]`,
  kql_bool_in: `(t) AS list_transform([t], lambda v: coalesce(TRY_CAST(v AS BOOLEAN), TRY_CAST(v AS DOUBLE) <> 0))[1]`,
  // JSON has no such numbers: they are strings there, that every conversion reads.
  kql_real_json: "(value) AS CASE WHEN isfinite(value) THEN to_json(value) ELSE to_json(kql_real_text(value)) END",
  // DuckDB takes commas at the end of lists, and numbers that JSON does not have.
  kql_parse_json: `(t) AS list_transform([t], lambda v: CASE WHEN v = '' OR trim(v) = 'null' THEN NULL
    WHEN json_valid(v) AND NOT (regexp_matches(v, '(?i),\\s*[\\]}]|nan|inf') AND
      regexp_matches(regexp_replace(v, '"(\\\\.|[^"\\\\])*"', '""', 'g'), '(?i),\\s*[\\]}]|nan|inf'))
    THEN CAST(v AS JSON) ELSE to_json(v) END)[1]`,
  kql_kind: `(value) AS list_transform([value], lambda v: CASE json_type(v) WHEN 'VARCHAR' THEN 'string'
    WHEN 'OBJECT' THEN 'dictionary' WHEN 'ARRAY' THEN 'array' WHEN 'BOOLEAN' THEN 'bool' WHEN 'DOUBLE' THEN 'real'
    WHEN 'BIGINT' THEN CASE WHEN TRY_CAST(v AS INTEGER) IS NULL THEN 'long' ELSE 'int' END
    WHEN 'UBIGINT' THEN CASE WHEN TRY_CAST(v AS INTEGER) IS NULL THEN 'long' ELSE 'int' END ELSE 'null' END)[1]`,

  kql_list: "(value) AS TRY_CAST(value AS JSON[])",
  kql_texts: "(value) AS list_transform(kql_list(value), lambda v: json_extract_string(v, '$'))",
  // Names and values of a bag in their order; NULL where the value is none.
  kql_entries: `(value) AS list_transform([value], lambda v: CASE WHEN json_type(v) = 'OBJECT' THEN list_transform(
    [{'k': json_keys(v), 'v': json_extract(v, '$.*')}], lambda p: list_transform(p.k, lambda k, i: {'k': k, 'v': p.v[i]}))[1] END)[1]`,
  kql_bag: `(entries) AS list_transform([entries], lambda l: CASE WHEN l IS NOT NULL THEN CAST('{' || coalesce(list_aggregate(list_transform(l,
    lambda e: CAST(to_json(e.k) AS VARCHAR) || ':' || coalesce(e.v, 'null')), 'string_agg', ','), '') || '}' AS JSON) END)[1]`,
  kql_bag_keys:
    "(value) AS list_transform([value], lambda v: CASE WHEN json_type(v) = 'OBJECT' THEN to_json(json_keys(v)) END)[1]",
  // What comes first wins.
  kql_merge: `(lists) AS list_transform([flatten(lists)], lambda l: list_transform([{'e': l, 'k': list_transform(l, lambda e: e.k)}],
    lambda p: kql_bag(list_filter(p.e, lambda e, i: list_position(p.k, e.k) = i)))[1])[1]`,
  kql_without: `(value, names) AS list_transform([{'e': kql_entries(value), 'n': names}],
    lambda p: kql_bag(list_filter(p.e, lambda e: NOT list_contains(p.n, e.k))))[1]`,
  kql_with: `(value, name, item) AS list_transform([{'e': kql_entries(value), 'n': name, 'v': item}], lambda p: kql_bag(
    CASE WHEN p.e IS NULL THEN NULL WHEN list_contains(list_transform(p.e, lambda e: e.k), p.n)
      THEN list_transform(p.e, lambda e: {'k': e.k, 'v': CASE WHEN e.k = p.n THEN p.v ELSE e.v END})
      ELSE list_append(p.e, {'k': p.n, 'v': p.v}) END))[1]`,
  kql_bag_or_new:
    "(value) AS list_transform([value], lambda v: CASE WHEN json_type(v) = 'OBJECT' THEN v ELSE CAST('{}' AS JSON) END)[1]",
  kql_has_key: `(value, name) AS list_transform([{'v': value, 'n': name}], lambda p: CASE
    WHEN starts_with(p.n, '$') THEN json_exists(p.v, p.n) ELSE list_contains(json_keys(p.v), p.n) END)[1]`,
  kql_zip_bag: `(names, items) AS list_transform([{'k': kql_list(names), 'v': kql_list(items)}], lambda p: kql_bag(list_filter(
    list_transform(p.k, lambda k, i: {'k': CASE WHEN json_type(k) = 'VARCHAR' THEN json_extract_string(k, '$') END, 'v': p.v[i]}),
    lambda e: e.k IS NOT NULL)))[1]`,
  kql_full_entries: "(entries) AS list_filter(entries, lambda e: e.v <> 'null' AND e.v <> '\"\"')",
  // Every one, or NULL where one of them is.
  kql_all: `(lists) AS list_transform([lists], lambda ls: CASE WHEN NOT list_contains(
    list_transform(ls, lambda l: l IS NULL), true) THEN ls END)[1]`,
};
