/** Macros of operators. */
export const TABLE_MACROS: Readonly<Record<string, string>> = {
  // What mv-expand makes rows of: the elements of an array, the members of a bag, or the one value that there is.
  kql_bag_members: `(value) AS CASE json_type(value) WHEN 'ARRAY' THEN json_extract(value, '$[*]')
    WHEN 'OBJECT' THEN list_transform(json_keys(value), lambda k: json_object(k, json_extract(value, kql_pointer(k))))
    ELSE [value] END`,
  kql_pair_members: `(value) AS CASE json_type(value) WHEN 'ARRAY' THEN json_extract(value, '$[*]')
    WHEN 'OBJECT' THEN list_transform(json_keys(value), lambda k: json_array(k, json_extract(value, kql_pointer(k))))
    ELSE [value] END`,
  // What an element is as another type: no text is read as a number, and no fraction is cut off.
  kql_element_long: `(value) AS CASE WHEN json_type(value) IN ('BIGINT', 'UBIGINT') THEN TRY_CAST(CAST(value AS VARCHAR) AS BIGINT)
    WHEN json_type(value) = 'DOUBLE' AND trunc(kql_element_real(value)) = kql_element_real(value)
      THEN TRY_CAST(kql_element_real(value) AS BIGINT) END`,
  kql_element_real: `(value) AS CASE WHEN json_type(value) IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN TRY_CAST(CAST(value AS VARCHAR) AS DOUBLE) END`,
  kql_element_bool: "(value) AS CASE WHEN json_type(value) = 'BOOLEAN' THEN CAST(value AS VARCHAR) = 'true' END",
  kql_element_text: "(value) AS CASE WHEN json_type(value) = 'VARCHAR' THEN json_extract_string(value, '$') END",
  kql_member_names: "(value) AS CASE WHEN json_type(value) = 'OBJECT' THEN json_keys(value) END",
  kql_shown_kind: `(value) AS CASE json_type(value) WHEN 'BIGINT' THEN 'long' WHEN 'UBIGINT' THEN 'long' WHEN 'DOUBLE' THEN 'real'
    WHEN 'BOOLEAN' THEN 'bool' WHEN 'VARCHAR' THEN 'string' WHEN 'ARRAY' THEN 'dynamic' WHEN 'OBJECT' THEN 'dynamic' END`,
  // How many steps lead from one number to another, both ends included.
  kql_steps: `(low, high, step) AS CASE WHEN (step > 0 AND high >= low) OR (step < 0 AND high <= low)
    THEN coalesce(TRY_CAST((CAST(high AS HUGEINT) - low) // step + 1 AS BIGINT), 9223372036854775807) ELSE 0 END`,
  kql_real_steps: `(low, high, step) AS CASE WHEN (step > 0 AND high >= low) OR (step < 0 AND high <= low)
    THEN coalesce(TRY_CAST(floor((high - low) / step) + 1 AS BIGINT), 9223372036854775807) ELSE 0 END`,
  // What parse makes of a part of a text; null where it is no value of the type.
  kql_parsed_long: "(t) AS CASE WHEN regexp_full_match(t, '\\s*[-+]?\\d+\\s*') THEN TRY_CAST(t AS BIGINT) END",
  kql_parsed_real: "(t) AS TRY_CAST(trim(t) AS DOUBLE)",
  kql_parsed_bool:
    "(t) AS CASE WHEN lower(trim(t)) IN ('true', '1') THEN true WHEN lower(trim(t)) IN ('false', '0') THEN false END",
  // Of parse-kv: a text in quotes without them, and without the characters that escape others in it.
  kql_unquoted: `(t, quoted, escaped) AS CASE WHEN regexp_full_match(t, quoted)
    THEN regexp_replace(substr(t, 2, length(t) - 2), escaped, '\\1', 'gs') ELSE t END`,
  // The pieces between delimiters as keys and values; what is no pair is left out, or belongs to the pair before it.
  kql_kv_pairs: `(pieces, pair, quoted, escaped) AS list_transform(list_filter(pieces, lambda p: regexp_matches(p, pair)),
    lambda p: {'k': kql_unquoted(regexp_extract(p, pair, 1), quoted, escaped), 'v': kql_unquoted(regexp_extract(p, pair, 2), quoted, escaped)})`,
  kql_kv_merged: `(pieces, pair, delimiter) AS list_transform(
    list_filter(range(1, len(pieces) + 1), lambda i: regexp_matches(pieces[i], pair)),
    lambda i: array_to_string(pieces[i:coalesce(list_min(list_filter(range(1, len(pieces) + 1),
      lambda j: j > i AND regexp_matches(pieces[j], pair))), len(pieces) + 1) - 1], delimiter))`,
  kql_kv_matches: `(t, pair) AS list_transform(range(1, len(regexp_extract_all(t, pair, 1)) + 1),
    lambda i: {'k': trim(regexp_extract_all(t, pair, 1)[i]), 'v': trim(regexp_extract_all(t, pair, 2)[i])})`,
  kql_kv_value: "(pairs, name) AS list_filter(pairs, lambda p: p.k = name)[1].v",
  // Where nothing says what ends a key: the word after it is its value.
  kql_kv_words: "(words, quoted, escaped) AS list_transform(words, lambda w: kql_unquoted(w, quoted, escaped))",
  kql_kv_next: "(words, name) AS words[nullif(list_position(words, name), 0) + 1]",
};
