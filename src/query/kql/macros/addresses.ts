const OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
const EDGE = "[^\\p{L}\\p{M}\\p{N}]";

/** Macros over IP addresses: an IPv4 address is a number, an IPv6 address its 32 hexadecimal digits. */
export const ADDRESS_MACROS: Readonly<Record<string, string>> = {
  kql_ipv4_parts: `(t) AS regexp_extract(t,
    '^\\s*(${OCTET})\\.(${OCTET})\\.(${OCTET})\\.(${OCTET})(?:/(3[0-2]|[12]?[0-9]))?\\s*$', ['a', 'b', 'c', 'd', 'bits'])`,
  kql_ipv4_number: `(parts) AS CASE WHEN parts.a <> '' THEN ((CAST(parts.a AS BIGINT) * 256 + CAST(parts.b AS BIGINT)) * 256
    + CAST(parts.c AS BIGINT)) * 256 + CAST(parts.d AS BIGINT) END`,
  kql_ipv4_bits:
    "(parts) AS CASE WHEN parts.a <> '' THEN CASE parts.bits WHEN '' THEN 32 ELSE CAST(parts.bits AS BIGINT) END END",
  kql_ipv4_net:
    "(t) AS list_transform([kql_ipv4_parts(t)], lambda v4: {ip: kql_ipv4_number(v4), bits: kql_ipv4_bits(v4)})[1]",
  kql_ipv4_cut: `(ip, bits) AS CASE WHEN bits BETWEEN 0 AND 32
    THEN ip & (4294967296 - (CAST(1 AS BIGINT) << CAST(32 - bits AS INTEGER))) END`,
  kql_ipv4_least: "(a, b, bits) AS CASE WHEN bits BETWEEN 0 AND 32 THEN least(a, b, bits) END",
  kql_ipv4_text: `(ip) AS CASE WHEN ip BETWEEN 0 AND 4294967295 THEN
    concat_ws('.', ip >> 24, (ip >> 16) & 255, (ip >> 8) & 255, ip & 255) END`,
  kql_parse_ipv4:
    "(t, most) AS list_transform([kql_ipv4_net(t)], lambda net: kql_ipv4_cut(net.ip, kql_ipv4_least(net.bits, 32, most)))[1]",
  kql_ipv4_compare: `(a, b, most) AS list_transform([{x: kql_ipv4_net(a), y: kql_ipv4_net(b)}],
    lambda two: list_transform([kql_ipv4_least(two.x.bits, two.y.bits, most)],
      lambda n: CAST(sign(kql_ipv4_cut(two.x.ip, n) - kql_ipv4_cut(two.y.ip, n)) AS BIGINT))[1])[1]`,
  kql_ipv4_is_in_range: `(t, net) AS list_transform([{x: kql_ipv4_net(t), y: kql_ipv4_net(net)}],
    lambda two: kql_ipv4_cut(two.x.ip, two.y.bits) = kql_ipv4_cut(two.y.ip, two.y.bits))[1]`,
  kql_ipv4_is_in_any_range: `(t, nets) AS CASE WHEN kql_ipv4_net(t).ip IS NOT NULL THEN coalesce(list_bool_or(
    list_transform(nets, lambda net: kql_ipv4_is_in_range(t, net))), len(nets) > 0 AND NULL) END`,
  kql_ipv4_is_private: `(t) AS list_transform([kql_parse_ipv4(t, 32)], lambda ip:
    kql_ipv4_cut(ip, 8) = 167772160 OR kql_ipv4_cut(ip, 12) = 2886729728 OR kql_ipv4_cut(ip, 16) = 3232235520)[1]`,
  kql_format_ipv4: `(net, most) AS list_transform([{ip: net.ip, bits: kql_ipv4_least(net.bits, 32, most)}],
    lambda own: kql_ipv4_text(kql_ipv4_cut(own.ip, own.bits)))[1]`,
  kql_format_ipv4_mask: `(net, most) AS list_transform([{ip: net.ip, bits: kql_ipv4_least(net.bits, 32, most)}],
    lambda own: kql_ipv4_text(kql_ipv4_cut(own.ip, own.bits)) || '/' || own.bits)[1]`,
  // The largest block that begins at an address and ends no later than another.
  kql_block_bits: `(ip, last) AS CAST(least(CASE WHEN ip = 0 THEN 32 ELSE floor(log2(ip & -ip)) END,
    floor(log2(last - ip + 1))) AS INTEGER)`,
  kql_blocks: `(first, last) AS list_reduce(list_transform(range(63), lambda block: {ip: first, out: ['']}),
    lambda state, step: CASE WHEN state.ip > last THEN state ELSE {ip: state.ip + (CAST(1 AS BIGINT) << kql_block_bits(state.ip, last)),
      out: list_append(state.out, kql_ipv4_text(state.ip) || '/' || (32 - kql_block_bits(state.ip, last)))} END,
    {ip: first, out: ['']}).out[2:]`,
  kql_ipv4_blocks: `(a, b) AS list_transform([{first: kql_parse_ipv4(a, 32), last: kql_parse_ipv4(b, 32)}],
    lambda span: CASE WHEN span.first <= span.last THEN kql_blocks(span.first, span.last) END)[1]`,

  kql_has_address: `(t, address, rest) AS regexp_matches(t,
    '(?:^|${EDGE})' || regexp_escape(address) || rest || '(?:$|${EDGE})')`,
  kql_has_ipv4: `(t, ip) AS coalesce(contains(t, ip) AND regexp_full_match(ip, '${OCTET}(?:\\.${OCTET}){3}')
    AND kql_has_address(t, ip, ''), false)`,
  kql_has_ipv4_prefix: `(t, prefix) AS coalesce(kql_has_ipv4(t, prefix) OR (contains(t, prefix)
    AND regexp_full_match(prefix, '(?:${OCTET}\\.){1,3}') AND kql_has_address(t, prefix,
      '${OCTET}' || repeat('\\.${OCTET}', 3 - CAST(length(prefix) - length(replace(prefix, '.', '')) AS INTEGER)))), false)`,
  kql_has_any_ipv4: "(t, ips) AS coalesce(list_bool_or(list_transform(ips, lambda ip: kql_has_ipv4(t, ip))), false)",
  kql_has_any_ipv4_prefix:
    "(t, ips) AS coalesce(list_bool_or(list_transform(ips, lambda ip: kql_has_ipv4_prefix(t, ip))), false)",

  // An address in the notation of IPv4, or one that ends in it: its bits count from the 97th.
  kql_ipv6_dotted: "(t) AS regexp_extract(t, '^\\s*(?:::(?:[fF]{4}:)?)?([0-9.]+)(/[0-9]+)?\\s*$', ['ip', 'bits'])",
  kql_ipv6_of_ipv4: `(own) AS list_transform([kql_ipv4_net(own.ip)], lambda v4: {
    hex: '00000000000000000000ffff' || lower(lpad(to_hex(v4.ip), 8, '0')),
    bits: list_transform([CASE own.bits WHEN '' THEN 32 ELSE TRY_CAST(own.bits[2:] AS BIGINT) END],
      lambda n: CASE WHEN n <= 32 THEN 96 + n WHEN n <= 128 THEN n END)[1], v4: true})[1]`,
  kql_ipv6_parts: "(t) AS regexp_extract(t, '^\\s*([0-9a-fA-F:]*)(?:/([0-9]{1,3}))?\\s*$', ['ip', 'bits'])",
  kql_ipv6_groups: "(t) AS CASE WHEN t = '' THEN CAST([] AS VARCHAR[]) ELSE string_split(t, ':') END",
  kql_ipv6_digits: `(groups) AS CASE WHEN list_bool_and(list_transform(groups, lambda g: length(g) BETWEEN 1 AND 4)) IS DISTINCT FROM false
    THEN array_to_string(list_transform(groups, lambda digits: lpad(lower(digits), 4, '0')), '') END`,
  kql_ipv6_hex: `(halves) AS CASE WHEN len(halves) > 2 THEN NULL
    WHEN len(halves) = 1 THEN list_transform([kql_ipv6_digits(kql_ipv6_groups(halves[1]))],
      lambda whole: CASE WHEN length(whole) = 32 THEN whole END)[1]
    ELSE list_transform([{head: kql_ipv6_digits(kql_ipv6_groups(halves[1])), tail: kql_ipv6_digits(kql_ipv6_groups(halves[2]))}],
      lambda ends: CASE WHEN length(ends.head || ends.tail) < 32
        THEN ends.head || repeat('0', CAST(32 - length(ends.head || ends.tail) AS INTEGER)) || ends.tail END)[1] END`,
  kql_ipv6_of_groups: `(own) AS {hex: kql_ipv6_hex(string_split(own.ip, '::')),
    bits: CASE own.bits WHEN '' THEN 128 ELSE CASE WHEN CAST(own.bits AS BIGINT) <= 128 THEN CAST(own.bits AS BIGINT) END END, v4: false}`,
  kql_ipv6_net: `(t) AS CASE WHEN contains(t, '.') THEN list_transform([kql_ipv6_dotted(t)], lambda own: kql_ipv6_of_ipv4(own))[1]
    ELSE list_transform([kql_ipv6_parts(t)], lambda own6: kql_ipv6_of_groups(own6))[1] END`,
  kql_ipv6_nibble: "(digit, n) AS lower(to_hex(CAST('0x' || digit AS INTEGER) & (16 - (1 << CAST(4 - n AS INTEGER)))))",
  kql_ipv6_cut: `(hex, bits) AS CASE WHEN bits = 128 THEN hex WHEN bits BETWEEN 0 AND 127 THEN rpad(hex[1 : bits // 4]
    || CASE WHEN bits % 4 = 0 THEN '' ELSE kql_ipv6_nibble(hex[bits // 4 + 1], bits % 4) END, 32, '0') END`,
  kql_ipv6_least: "(a, b, bits) AS CASE WHEN bits BETWEEN 0 AND 128 THEN least(a, b, bits) END",
  kql_parse_ipv6: `(t, most) AS list_transform([kql_ipv6_net(t)], lambda net: array_to_string(regexp_extract_all(
    kql_ipv6_cut(net.hex, CASE WHEN net.bits IS NOT NULL THEN kql_ipv6_least(net.bits, 128, most) END), '.{4}'), ':'))[1]`,
  // Where both are in the notation of IPv4, so are the bits that are asked for.
  kql_ipv6_bits: `(x, y, most) AS CASE WHEN x.bits IS NULL OR y.bits IS NULL THEN NULL
    ELSE kql_ipv6_least(x.bits, y.bits, CASE WHEN x.v4 AND y.v4 AND most BETWEEN 0 AND 32 THEN most + 96 ELSE most END) END`,
  kql_ipv6_compare: `(a, b, most) AS list_transform([{x: kql_ipv6_net(a), y: kql_ipv6_net(b)}],
    lambda two: list_transform([kql_ipv6_bits(two.x, two.y, most)],
      lambda n: list_transform([{x: kql_ipv6_cut(two.x.hex, n), y: kql_ipv6_cut(two.y.hex, n)}],
        lambda cut: CASE WHEN cut.x < cut.y THEN -1 WHEN cut.x > cut.y THEN 1 WHEN cut.x = cut.y THEN 0 END)[1])[1])[1]`,
  kql_ipv6_is_in_range: `(t, net) AS list_transform([{x: kql_ipv6_net(t), y: kql_ipv6_net(net)}],
    lambda two: kql_ipv6_cut(two.x.hex, two.y.bits) = kql_ipv6_cut(two.y.hex, two.y.bits))[1]`,
  kql_ipv6_is_in_any_range: `(t, nets) AS CASE WHEN kql_ipv6_net(t).hex IS NOT NULL THEN coalesce(list_bool_or(
    list_transform(nets, lambda net: kql_ipv6_is_in_range(t, net))), len(nets) > 0 AND NULL) END`,
};
