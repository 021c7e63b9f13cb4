import { expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import { literal, num, str } from "../values/coerce.ts";
import type { KqlType } from "../contract.ts";
import { arg, fn, no, type FunctionRule, type FunctionTable } from "./table.ts";

/** Functions over IP addresses. */
export const ADDRESSES: FunctionTable = {
  parse_ipv4: fn((args) => expr("long", sql`kql_parse_ipv4(${str(arg(args, 0))}, 32)`)),
  parse_ipv4_mask: withBits("long", (texts, bits) => sql`kql_parse_ipv4(${texts}, ${bits})`, 1, 32n),
  parse_ipv6: fn((args) => expr("string", sql`kql_parse_ipv6(${str(arg(args, 0))}, 128)`)),
  parse_ipv6_mask: withBits("string", (texts, bits) => sql`kql_parse_ipv6(${texts}, ${bits})`, 1, 128n),
  format_ipv4: fn((args) => formatted(args, "kql_format_ipv4")),
  format_ipv4_mask: fn((args) => formatted(args, "kql_format_ipv4_mask")),
  ipv4_compare: withBits("long", (texts, bits) => sql`kql_ipv4_compare(${texts}, ${bits})`, 2, 32n),
  ipv4_is_match: withBits("bool", (texts, bits) => sql`kql_ipv4_compare(${texts}, ${bits}) = 0`, 2, 32n),
  ipv6_compare: withBits("long", (texts, bits) => sql`CAST(kql_ipv6_compare(${texts}, ${bits}) AS BIGINT)`, 2, 128n),
  ipv6_is_match: withBits("bool", (texts, bits) => sql`kql_ipv6_compare(${texts}, ${bits}) = 0`, 2, 128n),
  ipv4_is_in_range: fn((args) => expr("bool", sql`kql_ipv4_is_in_range(${texts(args)})`)),
  ipv6_is_in_range: fn((args) => expr("bool", sql`kql_ipv6_is_in_range(${texts(args)})`)),
  ipv4_is_in_any_range: fn((args) =>
    expr("bool", sql`kql_ipv4_is_in_any_range(${str(arg(args, 0))}, ${listOf(args)})`),
  ),
  ipv6_is_in_any_range: fn((args) =>
    expr("bool", sql`kql_ipv6_is_in_any_range(${str(arg(args, 0))}, ${listOf(args)})`),
  ),
  ipv4_is_private: fn((args) => expr("bool", sql`kql_ipv4_is_private(${str(arg(args, 0))})`)),
  ipv4_netmask_suffix: fn((args) => expr("long", sql`struct_extract(kql_ipv4_net(${str(arg(args, 0))}), 'bits')`)),
  ipv4_range_to_cidr_list: fn((args) => expr("dynamic", sql`to_json(kql_ipv4_blocks(${texts(args)}))`)),
  has_ipv4: fn((args) => found(sql`kql_has_ipv4(${texts(args)})`)),
  has_ipv4_prefix: fn((args) => found(sql`kql_has_ipv4_prefix(${texts(args)})`)),
  has_any_ipv4: fn((args) => found(sql`kql_has_any_ipv4(${str(arg(args, 0))}, ${listOf(args)})`)),
  has_any_ipv4_prefix: fn((args) => found(sql`kql_has_any_ipv4_prefix(${str(arg(args, 0))}, ${listOf(args)})`)),
  __ipv6_lookup_ranges: no("it is internal"),
};

function found(own: Sql): Expr {
  return expr("bool", own, { nullable: false });
}

function texts(args: readonly Expr[]): readonly Expr[] {
  return args.map(str);
}

/** A function of so many addresses, and of bits that count at most: all of them where it is not said. */
function withBits(
  type: KqlType,
  own: (texts: readonly Expr[], bits: Expr) => Sql,
  size: number,
  all: bigint,
): FunctionRule {
  return fn((args) => {
    const bits = args[size];
    return expr(type, own(texts(args.slice(0, size)), bits === undefined ? literal("long", all) : num(bits, "long")));
  });
}

/** The arguments after the first as a list, or the array that the second one is. */
function listOf(args: readonly Expr[]): Sql {
  const second = arg(args, 1);
  return second.type === "dynamic" ? sql`kql_texts(${second})` : sql`[${texts(args.slice(1))}]`;
}

function formatted(args: readonly Expr[], macro: string): Expr {
  const [ip, bits] = [arg(args, 0), args[1] === undefined ? literal("long", 32n) : num(args[1], "long")];
  const isNumber = ip.type === "int" || ip.type === "long" || ip.type === "real";
  const net = isNumber ? sql`{'ip': ${num(ip, "long")}, 'bits': 32}` : sql`kql_ipv4_net(${str(ip)})`;
  return expr("string", [`${macro}(`, ...net, ", ", ...bits.sql, ")"]);
}
