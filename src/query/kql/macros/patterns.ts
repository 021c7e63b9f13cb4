/** Macros over regular expressions. */
export const PATTERN_MACROS: Readonly<Record<string, string>> = {
  // RE2's word boundaries are those of ASCII: a text of other words would be read in another way than the language does.
  kql_ascii_words: `(t) AS CASE WHEN regexp_matches(t, '[^\\x00-\\x7F]')
      AND regexp_matches(regexp_replace(t, '[\\x00-\\x7F]+', '', 'g'), '[\\p{L}\\p{M}\\p{N}\\p{Pc}]')
    THEN error('\\b of a regular expression met a text with words beyond ASCII: (?-u:\\b) is the boundary of ASCII words')
    ELSE t END`,
  kql_found: "(matches) AS CASE WHEN len(matches) > 0 THEN to_json(matches) END",
  kql_rewrite: `(rewrite) AS regexp_replace(replace(rewrite, '\\', '\\\\'), '\\\\\\\\([0-9])', '\\\\\\1', 'g')`,
  kql_window: `(t, first, most) AS substring(t, least(greatest(first, 0), 4294967294) + 1,
    CASE WHEN most < 0 THEN 4294967295 ELSE least(most, 4294967295) END)`,
  // Of the first match what stands before it is known; later ones are counted by what stands between them.
  kql_indexof_regex: `(parts, found, before, first, most, n) AS CAST(CASE WHEN first < 0 OR n < 1 OR most < -1 THEN NULL
    WHEN len(found) < n THEN -1
    WHEN n = 1 THEN first + length(before)
    WHEN len(parts) <> len(found) + 1 THEN error('a later match of a regular expression that matches nothing has no place')
    ELSE first + list_sum(list_transform(parts[1:n], lambda skipped: length(skipped)))
      + list_sum(list_transform(found[1:n - 1], lambda passed: length(passed))) END AS BIGINT)`,
};
