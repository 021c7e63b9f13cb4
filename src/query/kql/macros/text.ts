const EDGE = "[^\\p{L}\\p{M}\\p{N}]";

/** Macros over strings. */
export const TEXT_MACROS: Readonly<Record<string, string>> = {
  // A term is a run of letters and digits: everything else ends it. What does not begin with one begins no term either.
  kql_term_before: `(term) AS CASE WHEN regexp_matches(term, '^${EDGE}') THEN '' ELSE '(?:^|${EDGE})' END`,
  kql_term_after: `(term) AS CASE WHEN regexp_matches(term, '${EDGE}$') THEN '' ELSE '(?:$|${EDGE})' END`,
  kql_has: `(t, term) AS contains(t, term) AND (term = '' OR regexp_matches(t,
    kql_term_before(term) || regexp_escape(term) || kql_term_after(term)))`,
  kql_hasprefix: `(t, term) AS contains(t, term) AND (term = '' OR regexp_matches(t,
    kql_term_before(term) || regexp_escape(term)))`,
  kql_hassuffix: `(t, term) AS contains(t, term) AND (term = '' OR regexp_matches(t,
    regexp_escape(term) || kql_term_after(term)))`,
  kql_has_any_index: `(t, terms) AS CAST(coalesce(list_position(list_transform(terms, lambda has_term: kql_has(t, has_term)),
    true), 0) - 1 AS BIGINT)`,
  kql_real_text: `(value) AS CASE WHEN isnan(value) THEN 'NaN' WHEN value = CAST('inf' AS DOUBLE) THEN 'Infinity'
    WHEN value = CAST('-inf' AS DOUBLE) THEN '-Infinity' ELSE CAST(value AS VARCHAR) END`,
  kql_decimal_text: `(value) AS list_transform([CAST(value AS VARCHAR)],
    lambda digits: CASE WHEN contains(digits, '.') THEN rtrim(rtrim(digits, '0'), '.') ELSE digits END)[1]`,
  kql_joined: `(list, glue) AS CASE len(list) WHEN 0 THEN ''
    ELSE list_reduce(list, lambda left_part, right_part: left_part || glue || right_part) END`,
  kql_from: "(t, first) AS CASE WHEN first < 0 THEN greatest(length(t) + first, 0) ELSE least(first, 4294967294) END",
  kql_substring:
    "(t, first, n) AS CASE WHEN n <= 0 THEN '' ELSE substring(t, kql_from(t, first) + 1, least(n, 4294967295)) END",
  kql_split_at: "(parts, i) AS parts[greatest(i, 0) + 1 : CASE WHEN i < 0 THEN 0 ELSE i + 1 END]",
  kql_strrep: `(t, n, delimiter) AS CASE WHEN n < 1 THEN ''
    ELSE repeat(t || delimiter, least(n, 1024) - 1) || t END`,
  kql_strcmp: "(a, b) AS CAST(CASE WHEN a = b THEN 0 WHEN a < b THEN -1 ELSE 1 END AS BIGINT)",
  kql_translate: `(search, new, t) AS translate(t, search,
    CASE WHEN new = '' THEN '' ELSE rpad(new, CAST(greatest(length(search), length(new)) AS INTEGER), right(new, 1)) END)`,
  // The place of the n-th part that ends with a match, each search no longer than \`most\`; matches do not overlap.
  kql_nth_place: `(parts, size, most, n) AS CASE WHEN len(parts) <= n
      OR (most >= 0 AND list_max(list_transform(parts[1:n], lambda searched: length(searched))) + size > most) THEN -1
    ELSE list_sum(list_transform(parts[1:n], lambda skipped: length(skipped))) + (n - 1) * size END`,
  kql_indexof_from: `(t, wanted, first, most, n) AS CASE WHEN n < 1 OR most < -1 THEN NULL
    WHEN wanted = '' THEN CASE WHEN n = 1 THEN first ELSE -1 END
    ELSE list_transform([kql_nth_place(string_split(substring(t, first + 1), wanted), length(wanted), most, n)],
      lambda place: CASE WHEN place < 0 THEN -1 ELSE first + place END)[1] END`,
  kql_indexof:
    "(t, wanted, first, most, n) AS CAST(kql_indexof_from(t, wanted, kql_from(t, first), most, n) AS BIGINT)",
  // Matches may overlap: of those that cannot, splitting counts them in one pass.
  kql_countof: "(t, wanted) AS CASE WHEN wanted = '' THEN 0 ELSE len(string_split(t, wanted)) - 1 END",
  kql_countof_overlapping: `(t, wanted) AS CASE WHEN wanted = '' OR NOT contains(t, wanted) THEN 0
    ELSE len(list_filter(range(1, length(t) - length(wanted) + 2),
      lambda place: substring(t, place, length(wanted)) = wanted)) END`,
  kql_codepoints: `(t) AS CASE WHEN t = '' THEN CAST([] AS INTEGER[])
    ELSE list_transform(string_split(t, ''), lambda letter: unicode(letter)) END`,
  kql_is_codepoint: "(code) AS code BETWEEN 0 AND 55295 OR code BETWEEN 57344 AND 1114111",
  kql_text_of_codepoints: `(codes) AS CASE WHEN list_bool_and(list_transform(codes,
      lambda code: coalesce(kql_is_codepoint(code), false)))
    THEN array_to_string(list_transform(codes,
      lambda valid: chr(CAST(CASE WHEN kql_is_codepoint(valid) THEN valid ELSE 32 END AS INTEGER))), '') END`,
  kql_lower_list: "(list) AS list_transform(kql_texts(list), lambda upper_member: lower(upper_member))",
  kql_has_any:
    "(t, terms) AS coalesce(list_bool_or(list_transform(terms, lambda any_term: kql_has(t, any_term))), false)",
  kql_has_all:
    "(t, terms) AS coalesce(list_bool_and(list_transform(terms, lambda all_term: kql_has(t, all_term))), true)",
  kql_in_array: `(t, list, folded) AS list_contains(CASE WHEN folded THEN kql_lower_list(list) ELSE kql_texts(list) END,
    CASE WHEN folded THEN lower(t) ELSE t END)`,
  kql_texts_or_empty: "(list) AS list_transform(kql_list(list), lambda shown: coalesce(kql_dynamic_text(shown), ''))",
  kql_longs: "(list) AS list_transform(kql_list(list), lambda long_member: kql_dynamic_long(long_member))",
  kql_string_of: "(value) AS CASE WHEN json_type(value) = 'VARCHAR' THEN json_extract_string(value, '$') END",
  // Pieces of the text, and whether they are replaced already: the lookups take their turns, and none reads another's.
  kql_replace_piece: `(piece, old, new) AS CASE WHEN piece.done OR coalesce(old, '') = '' THEN [piece]
    ELSE flatten(list_transform(string_split(piece.t, old), lambda part, i: CASE WHEN i = 1 THEN [{t: part, done: false}]
      ELSE [{t: coalesce(new, old), done: true}, {t: part, done: false}] END)) END`,
  kql_replace_strings: `(text, lookups, rewrites) AS array_to_string(list_transform(list_reduce(
      list_transform(coalesce(kql_list(lookups), []), lambda lookup, turn_of: {pieces: [{t: '', done: true}],
        old: kql_string_of(lookup), new: kql_string_of(kql_element(rewrites, turn_of - 1))}),
      lambda state, turn: {pieces: flatten(list_transform(state.pieces,
        lambda piece: kql_replace_piece(piece, turn.old, turn.new))), old: '', new: ''},
      {pieces: [{t: text, done: false}], old: '', new: ''}).pieces, lambda replaced: replaced.t), '')`,
};
