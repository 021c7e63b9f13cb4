/** Macros over strings. */
export const TEXT_MACROS: Readonly<Record<string, string>> = {
  // A term is a run of letters and digits: everything else ends it.
  kql_has: `(t, term) AS contains(t, term) AND regexp_matches(t,
    '(^|[^\\p{L}\\p{N}])' || regexp_escape(term) || '($|[^\\p{L}\\p{N}])')`,
  kql_hasprefix: "(t, term) AS contains(t, term) AND regexp_matches(t, '(^|[^\\p{L}\\p{N}])' || regexp_escape(term))",
  kql_hassuffix: "(t, term) AS contains(t, term) AND regexp_matches(t, regexp_escape(term) || '($|[^\\p{L}\\p{N}])')",
  kql_real_text: `(value) AS CASE WHEN isnan(value) THEN 'NaN' WHEN value = CAST('inf' AS DOUBLE) THEN 'Infinity'
    WHEN value = CAST('-inf' AS DOUBLE) THEN '-Infinity' ELSE CAST(value AS VARCHAR) END`,
};
