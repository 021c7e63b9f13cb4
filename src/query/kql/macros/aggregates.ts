/** Macros over the lists that aggregates gather. */
export const AGGREGATE_MACROS: Readonly<Record<string, string>> = {
  // The first value up to which the weights make up the share, by halving: items are sorted by value, `r` is the weight.
  kql_weighted: `(items, share, whole) AS list_transform(
    [struct_pack(v := list_transform(items, lambda item: item.v), r := list_transform(items, lambda item: item.r),
      least := list_sum(list_transform(items, lambda item: item.r)) * share, n := len(items))],
    lambda a: a.v[list_reduce(list_transform(range(48), lambda step: struct_pack(low := CAST(0 AS BIGINT), high := a.n)),
      lambda s, step: CASE WHEN s.high - s.low <= 1 THEN s
        WHEN list_sum(list_slice(a.r, 1, (s.low + s.high) // 2)) * whole >= a.least
        THEN struct_pack(low := s.low, high := (s.low + s.high) // 2)
        ELSE struct_pack(low := (s.low + s.high) // 2, high := s.high) END).high])[1]`,
  // Rounded down, also below zero.
  kql_whole_steps: "(distance, step) AS (distance - (distance % step + step) % step) // step",
  kql_elements: `(value) AS CASE WHEN json_type(value) = 'ARRAY'
    THEN list_transform(CAST(value AS JSON[]), lambda one: kql_not_null(one)) ELSE [kql_not_null(value)] END`,
  // Of members with the same name the first one stays.
  kql_first_members: `(members) AS list_transform(
    [list_sort(list_transform(members, lambda m, i: struct_pack(k := m.key, i := i, v := m.value)))],
    lambda s: list_sort(list_transform(list_filter(s, lambda m, i: i = 1 OR s[i - 1].k <> m.k),
      lambda m: struct_pack(i := m.i, k := m.k, v := m.v))))[1]`,
  kql_named_members: "(bag) AS map_entries(CAST(bag AS MAP(VARCHAR, JSON)))",
  kql_merged: `(bags, size) AS list_transform(
    [list_slice(kql_first_members(flatten(list_transform(bags, lambda bag: kql_named_members(bag)))), 1, size)],
    lambda s: to_json(map(list_transform(s, lambda m: m.k), list_transform(s, lambda m: m.v))))[1]`,
  // Values that differ only in their scalars become the same text.
  kql_skeleton: `(value) AS array_to_string(list_transform([regexp_extract_all(CAST(value AS VARCHAR),
      '"(?:[^"\\\\]|\\\\.)*"|[-+.0-9eE]+|true|false|null|[{}\\[\\],:]')],
    lambda tokens: list_transform(tokens, lambda token, i: CASE
      WHEN token[1] = '"' THEN CASE WHEN tokens[i + 1] = ':' THEN token ELSE '"string"' END
      WHEN token IN ('true', 'false') THEN '"bool"'
      WHEN regexp_matches(token, '^[-+0-9]') THEN CASE WHEN regexp_matches(token, '[.eE]') THEN '"double"' ELSE '"long"' END
      ELSE token END))[1], '')`,
  kql_children: `(value) AS CASE json_type(value) WHEN 'OBJECT' THEN kql_named_members(value)
    WHEN 'ARRAY' THEN list_transform(CAST(value AS JSON[]), lambda one: struct_pack(key := '\`indexer\`', value := one)) END`,
  // Writes the tree of names in one pass: what opens a node sorts before, what closes it after all nodes below it.
  kql_schema_of: `(skeletons) AS (
    WITH RECURSIVE nodes(path, value) AS (
      SELECT CAST([] AS VARCHAR[]), CAST(skeleton AS JSON) FROM (SELECT unnest(skeletons) AS skeleton)
      UNION
      SELECT list_append(path, child.key), child.value FROM (SELECT path, unnest(kql_children(value)) AS child FROM nodes)
    ), kinds AS (
      SELECT path, coalesce(list_sort(list(DISTINCT CAST(value AS VARCHAR)) FILTER (json_type(value) = 'VARCHAR')), []) AS scalars,
        bool_or(json_type(value) IN ('OBJECT', 'ARRAY')) AS has_members
      FROM nodes WHERE json_type(value) <> 'NULL' GROUP BY path
    ), placed AS (
      SELECT *, len(scalars) + CAST(has_members AS INTEGER) > 1 AS is_list,
        row_number() OVER (PARTITION BY len(path), list_slice(path, 1, len(path) - 1) ORDER BY path) > 1 AS is_later
      FROM kinds
    )
    SELECT CAST(string_agg(part, '' ORDER BY place) AS JSON) FROM (
      SELECT path AS place, CASE WHEN is_later THEN ',' ELSE '' END
        || CASE WHEN len(path) > 0 THEN CAST(to_json(path[-1]) AS VARCHAR) || ':' ELSE '' END
        || CASE WHEN is_list THEN '[' ELSE '' END || array_to_string(scalars, ',')
        || CASE WHEN has_members AND len(scalars) > 0 THEN ',' ELSE '' END
        || CASE WHEN has_members THEN '{' ELSE '' END AS part
      FROM placed
      UNION ALL
      SELECT list_append(path, chr(1114111)), CASE WHEN has_members THEN '}' ELSE '' END
        || CASE WHEN is_list THEN ']' ELSE '' END FROM placed))`,
};
