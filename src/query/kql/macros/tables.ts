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
  // How many steps lead from one number to another, both ends included.
  kql_steps: `(low, high, step) AS CASE WHEN (step > 0 AND high >= low) OR (step < 0 AND high <= low)
    THEN CAST((CAST(high AS HUGEINT) - low) // step + 1 AS BIGINT) ELSE 0 END`,
  kql_real_steps: `(low, high, step) AS CASE WHEN (step > 0 AND high >= low) OR (step < 0 AND high <= low)
    THEN CAST(floor((high - low) / step) + 1 AS BIGINT) ELSE 0 END`,
  // Of parse-kv: the pairs of a text, and the value of the first with that key.
  kql_kv_value: "(pairs, k) AS list_filter(pairs, lambda p: p.k = k)[1].v",
};
