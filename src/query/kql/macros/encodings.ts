const P1 = "11400714785074694791";
const P2 = "14029467366897019727";
const P3 = "1609587929392839161";
const P4 = "9650029242287828579";
const P5 = "2870177450012600261";
const MASK = "18446744073709551615";
const GUID_ORDER = "'\\4\\3\\2\\1\\6\\5\\8\\7'";

const big = (value: string): string => `CAST(${value} AS UHUGEINT)`;

/** Macros that encode, decode and hash. */
export const ENCODING_MACROS: Readonly<Record<string, string>> = {
  kql_base64_bytes: "(t) AS TRY(from_base64(t))",
  kql_base64_text: "(t) AS TRY(decode(from_base64(t)))",
  kql_byte_list:
    "(bytes) AS list_transform(regexp_extract_all(hex(bytes), '..'), lambda two: CAST('0x' || two AS BIGINT))",
  kql_bytes_of: `(codes) AS CASE WHEN list_bool_and(list_transform(codes, lambda code: coalesce(code BETWEEN 0 AND 255, false)))
    THEN unhex(array_to_string(list_transform(codes, lambda byte: lpad(to_hex(greatest(byte, 0)), 2, '0')), '')) END`,
  // The first three numbers of a guid stand in memory with their lowest byte first.
  kql_guid_hex: `(hex) AS regexp_replace(hex, '^(..)(..)(..)(..)(..)(..)(..)(..)', ${GUID_ORDER})`,
  kql_base64_of_guid: "(id) AS to_base64(unhex(kql_guid_hex(replace(CAST(id AS VARCHAR), '-', ''))))",
  kql_guid_of_base64: `(t) AS list_transform([hex(TRY(from_base64(t)))],
    lambda bytes: CASE WHEN length(bytes) = 32 THEN CAST(kql_guid_hex(bytes) AS UUID) END)[1]`,
  kql_guid_of: `(t) AS TRY_CAST(regexp_extract(t,
    '^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}') AS UUID)`,
  kql_url_encode: `(t, space) AS array_to_string(list_transform(string_split(t, ''),
    lambda c: CASE WHEN c = ' ' THEN space WHEN regexp_matches(c, '[A-Za-z0-9._~-]') THEN c ELSE lower(url_encode(c)) END), '')`,
  kql_url_decode: "(t) AS TRY(url_decode(replace(t, '+', ' ')))",

  // XXH64 with seed 0, in 128-bit numbers cut to 64 bits.
  kql_xx_cut: `(value) AS (value) & ${big(MASK)}`,
  // The number twice in 128 bits, of which 64 are cut out.
  kql_xx_rotate: `(value, n) AS kql_xx_cut(((value) * ${big("18446744073709551617")}) >> CAST(64 - n AS UHUGEINT))`,
  kql_xx_mix: `(value) AS kql_xx_cut(kql_xx_rotate(kql_xx_cut((value) * ${big(P2)}), 31) * ${big(P1)})`,
  kql_xx_round: `(sum, lane) AS kql_xx_cut(kql_xx_rotate(kql_xx_cut((sum) + (lane) * ${big(P2)}), 31) * ${big(P1)})`,
  kql_xx_merge: `(hash, sum) AS kql_xx_cut(xor(hash, kql_xx_mix(sum)) * ${big(P1)} + ${big(P4)})`,
  kql_xx_lanes: `(hex) AS list_transform(regexp_extract_all(hex, '.{16}'), lambda lane: CAST(CAST('0x' || regexp_replace(lane,
    '(..)(..)(..)(..)(..)(..)(..)(..)', '\\8\\7\\6\\5\\4\\3\\2\\1') AS UBIGINT) AS UHUGEINT))`,
  kql_xx_stripes: `(lanes) AS list_transform(range(len(lanes) // 4), lambda stripe: {a: lanes[stripe * 4 + 1],
    b: lanes[stripe * 4 + 2], c: lanes[stripe * 4 + 3], d: lanes[stripe * 4 + 4]})`,
  kql_xx_sums: `(lanes) AS list_reduce(kql_xx_stripes(lanes), lambda sums, s: {a: kql_xx_round(sums.a, s.a),
      b: kql_xx_round(sums.b, s.b), c: kql_xx_round(sums.c, s.c), d: kql_xx_round(sums.d, s.d)},
    {a: kql_xx_cut(${big(P1)} + ${big(P2)}), b: ${big(P2)}, c: ${big("0")}, d: ${big("18446744073709551616")} - ${big(P1)}})`,
  kql_xx_join: `(sums) AS list_reduce([sums.a, sums.b, sums.c, sums.d], lambda joined, lane: kql_xx_merge(joined, lane),
    kql_xx_cut(kql_xx_rotate(sums.a, 1) + kql_xx_rotate(sums.b, 7) + kql_xx_rotate(sums.c, 12) + kql_xx_rotate(sums.d, 18)))`,
  kql_xx_start: `(lanes) AS CASE WHEN len(lanes) < 4 THEN ${big(P5)}
    ELSE list_transform([kql_xx_sums(lanes)], lambda summed: kql_xx_join(summed))[1] END`,
  kql_xx_eight: `(hash, lanes) AS list_reduce(lanes[len(lanes) // 4 * 4 + 1 :], lambda eight, lane: kql_xx_cut(
    kql_xx_rotate(xor(eight, kql_xx_mix(lane)), 27) * ${big(P1)} + ${big(P4)}), hash)`,
  kql_xx_four: `(hash, hex) AS CASE WHEN length(hex) < 8 THEN hash ELSE kql_xx_cut(kql_xx_rotate(xor(hash,
    kql_xx_cut(CAST(CAST('0x' || regexp_replace(hex, '^(..)(..)(..)(..).*', '\\4\\3\\2\\1') AS UBIGINT) AS UHUGEINT) * ${big(P1)})), 23)
    * ${big(P2)} + ${big(P3)}) END`,
  kql_xx_one: `(hash, hex) AS list_reduce(list_transform(regexp_extract_all(hex, '..'),
      lambda two: CAST(CAST('0x' || two AS UBIGINT) AS UHUGEINT)),
    lambda one, byte: kql_xx_cut(kql_xx_rotate(xor(one, kql_xx_cut(byte * ${big(P5)})), 11) * ${big(P1)}), hash)`,
  kql_xx_fold: "(hash, n) AS list_transform([hash], lambda folded: xor(folded, folded >> CAST(n AS UHUGEINT)))[1]",
  kql_xx_end: `(hash) AS kql_xx_fold(kql_xx_cut(kql_xx_fold(kql_xx_cut(kql_xx_fold(hash, 33) * ${big(P2)}), 29) * ${big(P3)}), 32)`,
  kql_xx_signed: `(hash) AS list_transform([CAST(hash AS HUGEINT)], lambda signed: CAST(
    CASE WHEN signed >= 9223372036854775808 THEN signed - 18446744073709551616 ELSE signed END AS BIGINT))[1]`,
  kql_xx_tail: `(hash, hex) AS kql_xx_one(list_transform([hash], lambda before: kql_xx_four(before, hex))[1],
    CASE WHEN length(hex) < 8 THEN hex ELSE substring(hex, 9) END)`,
  kql_xx_hex: `(hex) AS list_transform([{hex: hex, lanes: kql_xx_lanes(hex)}], lambda own: kql_xx_signed(kql_xx_end(kql_xx_tail(
    kql_xx_eight(kql_xx_cut(kql_xx_start(own.lanes) + CAST(length(own.hex) // 2 AS UHUGEINT)), own.lanes),
    own.hex[len(own.lanes) * 16 + 1 :]))))[1]`,
  kql_xxhash64: "(t) AS kql_xx_hex(hex(encode(t)))",
  kql_xxhash64_long: `(value) AS kql_xx_hex(regexp_replace(lpad(to_hex(value), 16, '0'),
    '(..)(..)(..)(..)(..)(..)(..)(..)', '\\8\\7\\6\\5\\4\\3\\2\\1'))`,
};
