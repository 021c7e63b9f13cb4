/** Macros over dynamic values (JSON). A JSON null is NULL. */
export const DYNAMIC_MACROS: Readonly<Record<string, string>> = {
  kql_not_null: "(value) AS CASE WHEN json_type(value) = 'NULL' THEN NULL ELSE value END",
  kql_pointer: "(name) AS '/' || replace(replace(name, '~', '~0'), '/', '~1')",
  kql_member: `(value, name) AS CASE WHEN json_type(value) = 'OBJECT'
    THEN kql_not_null(json_extract(value, kql_pointer(name))) END`,
  kql_element: `(value, i) AS CASE WHEN json_type(value) = 'ARRAY'
    THEN kql_not_null(json_extract(value, CAST(CASE WHEN i < 0 THEN i + json_array_length(value) ELSE i END AS BIGINT))) END`,
  kql_dynamic_text: `(value) AS CASE json_type(value) WHEN 'VARCHAR' THEN json_extract_string(value, '$')
    WHEN 'NULL' THEN NULL ELSE CAST(value AS VARCHAR) END`,
  kql_dynamic_long: "(value) AS TRY_CAST(kql_dynamic_text(value) AS BIGINT)",
  kql_dynamic_real: "(value) AS TRY_CAST(kql_dynamic_text(value) AS DOUBLE)",
  kql_dynamic_bool: "(value) AS TRY_CAST(kql_dynamic_text(value) AS BOOLEAN)",
};
