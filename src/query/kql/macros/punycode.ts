const POWERS = "[1, 35, 1225, 42875, 1500625, 52521875, 1838265625, 64339296875, 2251875390625]";
const DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789";
const LONGEST = 256;

/** Punycode (RFC 3492), a digit at a time. */
export const PUNYCODE_MACROS: Readonly<Record<string, string>> = {
  kql_puny_limit: "(k, bias) AS least(greatest(k - bias, 1), 26)",
  kql_puny_settled: `(rest) AS list_transform([list_filter(range(9), lambda times: rest // (${POWERS})[times + 1] <= 455)[1]],
    lambda found: list_transform([rest // (${POWERS})[found + 1]], lambda left_over:
      36 * found + (36 * left_over) // (left_over + 38))[1])[1]`,
  kql_puny_adapted: `(delta, size, is_first) AS list_transform([CASE WHEN is_first THEN delta // 700 ELSE delta // 2 END],
    lambda damped: list_transform([damped + damped // size], lambda rest: kql_puny_settled(rest))[1])[1]`,

  kql_puny_state:
    "(n, i, old, bias, w, k, bad, letters) AS {n: n, i: i, old: old, bias: bias, w: w, k: k, bad: bad, out: letters, digit: CAST(NULL AS BIGINT)}",
  // A number is complete: a letter goes to its place.
  kql_puny_put: `(s, i) AS list_transform([{n: s.n + i // (len(s.out) + 1), at_place: i % (len(s.out) + 1)}], lambda put: kql_puny_state(
    put.n, put.at_place + 1, put.at_place + 1, kql_puny_adapted(i - s.old, len(s.out) + 1, s.old = 0), 1, 36,
    NOT kql_is_codepoint(put.n), list_concat(s.out[1 : put.at_place], [put.n], s.out[put.at_place + 1 :])))[1]`,
  kql_puny_read: `(s, digit) AS CASE
    WHEN s.bad OR digit IS NULL OR s.w > 1000000000000 THEN kql_puny_state(s.n, s.i, s.old, s.bias, s.w, s.k, true, s.out)
    WHEN digit < kql_puny_limit(s.k, s.bias) THEN kql_puny_put(s, s.i + digit * s.w)
    ELSE kql_puny_state(s.n, s.i + digit * s.w, s.old, s.bias, s.w * (36 - kql_puny_limit(s.k, s.bias)), s.k + 36, false, s.out) END`,
  kql_puny_digit: `(letter) AS nullif(instr('${DIGITS}', lower(letter)), 0) - 1`,
  kql_puny_decoded: `(basic, tail) AS list_transform([list_reduce(list_transform(string_split(tail, ''),
      lambda letter: {n: CAST(0 AS BIGINT), i: CAST(0 AS BIGINT), old: CAST(0 AS BIGINT), bias: CAST(0 AS BIGINT), w: CAST(0 AS BIGINT),
        k: CAST(0 AS BIGINT), bad: false, out: CAST([] AS BIGINT[]), digit: CAST(kql_puny_digit(letter) AS BIGINT)}),
      lambda state, read: kql_puny_read(state, read.digit),
      kql_puny_state(CAST(128 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(72 AS BIGINT), CAST(1 AS BIGINT), CAST(36 AS BIGINT), false,
        CAST(kql_codepoints(basic) AS BIGINT[])))],
    lambda decoded: CASE WHEN NOT decoded.bad AND decoded.w = 1 THEN kql_text_of_codepoints(decoded.out) END)[1]`,
  kql_puny_parts: "(t) AS regexp_extract(t, '^(?s:(.*)-)?([^-]*)$', ['basic', 'tail'])",
  kql_punycode_to_string: `(t) AS CASE WHEN regexp_matches(t, '[^\\x00-\\x7F]') THEN NULL ELSE list_transform([kql_puny_parts(t)],
    lambda parts: CASE WHEN parts.tail = '' THEN parts.basic ELSE kql_puny_decoded(parts.basic, parts.tail) END)[1] END`,

  kql_puny_digits: `(delta, bias) AS list_transform([list_reduce(
      list_transform(range(36, 400, 36), lambda k: {rest: k, is_over: false, out: ''}),
      lambda spelled, step: CASE WHEN spelled.is_over OR spelled.rest < kql_puny_limit(step.rest, bias)
        THEN {rest: spelled.rest, is_over: true, out: spelled.out}
        ELSE {rest: (spelled.rest - kql_puny_limit(step.rest, bias)) // (36 - kql_puny_limit(step.rest, bias)), is_over: false,
          out: spelled.out || ('${DIGITS}')[1 + kql_puny_limit(step.rest, bias)
            + (spelled.rest - kql_puny_limit(step.rest, bias)) % (36 - kql_puny_limit(step.rest, bias))]} END,
      {rest: delta, is_over: false, out: ''})], lambda number: number.out || ('${DIGITS}')[number.rest + 1])[1]`,
  kql_puny_written:
    "(n, delta, bias, size, letters) AS {n: n, delta: delta, bias: bias, size: size, out: letters, code: CAST(NULL AS BIGINT)}",
  // Each code in turn looks at all letters: smaller ones are counted, its own are written.
  kql_puny_write: `(s, code, n, basic_size) AS CASE
    WHEN code IS NULL THEN kql_puny_written(n, s.delta + CASE WHEN s.n = 128 AND s.size = basic_size AND s.delta = 0
      THEN (n - 128) * (s.size + 1) ELSE 1 + (n - s.n - 1) * (s.size + 1) END, s.bias, s.size, s.out)
    WHEN code < n THEN kql_puny_written(s.n, s.delta + 1, s.bias, s.size, s.out)
    WHEN code = n THEN kql_puny_written(s.n, CAST(0 AS BIGINT), kql_puny_adapted(s.delta, s.size + 1, s.size = basic_size), s.size + 1,
      s.out || kql_puny_digits(s.delta, s.bias))
    ELSE s END`,
  kql_puny_turns: `(codes) AS flatten(list_transform(list_sort(list_distinct(list_filter(codes, lambda high: high >= 128))),
    lambda n: list_concat([{n: n, delta: CAST(0 AS BIGINT), bias: CAST(0 AS BIGINT), size: CAST(0 AS BIGINT), out: '', code: CAST(NULL AS BIGINT)}],
      list_transform(codes, lambda code: {n: n, delta: CAST(0 AS BIGINT), bias: CAST(0 AS BIGINT), size: CAST(0 AS BIGINT), out: '', code: code}))))`,
  kql_puny_encoded: `(codes, basic) AS list_reduce(kql_puny_turns(codes),
    lambda state, turn: kql_puny_write(state, turn.code, turn.n, length(basic)),
    kql_puny_written(CAST(128 AS BIGINT), CAST(0 AS BIGINT), CAST(72 AS BIGINT), CAST(length(basic) AS BIGINT),
      basic || CASE WHEN basic = '' THEN '' ELSE '-' END)).out`,
  kql_punycode_from_string: `(t) AS CASE
    WHEN length(t) > ${LONGEST} THEN error('Punycode is made of texts of at most ${LONGEST} characters')
    ELSE list_transform([{codes: CAST(kql_codepoints(t) AS BIGINT[]), basic: regexp_replace(t, '[^\\x00-\\x7F]+', '', 'g')}],
      lambda own: kql_puny_encoded(own.codes, own.basic))[1] END`,

  kql_domain_from_punycode: `(t) AS list_transform([list_transform(string_split(t, '.'), lambda label:
      CASE WHEN starts_with(lower(label), 'xn--') THEN kql_punycode_to_string(label[5:]) ELSE label END)],
    lambda labels: CASE WHEN len(list_filter(labels, lambda label: label IS NULL)) = 0 THEN array_to_string(labels, '.') END)[1]`,
  kql_domain_to_punycode: `(t) AS array_to_string(list_transform(string_split(regexp_replace(t, '[\\x{3002}\\x{FF0E}\\x{FF61}]', '.', 'g'), '.'),
    lambda label: CASE WHEN regexp_matches(label, '[^\\x00-\\x7F]') THEN 'xn--' || kql_punycode_from_string(label) ELSE label END), '.')`,
};
