import { expr, sql, type Expr, type Sql } from "../plan/expression.ts";
import { dyn, num, str } from "../values/coerce.ts";
import { arg, fn, no, type FunctionRule, type FunctionTable } from "./table.ts";

const COMPRESSION = "DuckDB has no function that compresses";
const COMBINING = "how it combines hashes is not public";

/** Functions that encode, decode and hash. */
export const ENCODINGS: FunctionTable = {
  base64_encode_tostring: fn(base64Encoded),
  base64_encodestring: fn(base64Encoded),
  base64_decode_tostring: fn(base64Decoded),
  base64_decodestring: fn(base64Decoded),
  base64_decode_toarray: fn((args) => {
    return expr("dynamic", sql`to_json(kql_byte_list(kql_base64_bytes(${str(arg(args, 0))})))`);
  }),
  base64_encode_fromarray: fn((args) => {
    return expr("string", sql`to_base64(kql_bytes_of(kql_longs(${dyn(arg(args, 0))})))`);
  }),
  base64_decode_toguid: fn((args) => expr("guid", sql`kql_guid_of_base64(${str(arg(args, 0))})`)),
  base64_encode_fromguid: fn((args) => expr("string", sql`kql_base64_of_guid(${arg(args, 0)})`)),
  url_encode: fn((args) => expr("string", sql`kql_url_encode(${str(arg(args, 0))}, '+')`, { nullable: false })),
  url_encode_component: fn((args) => {
    return expr("string", sql`kql_url_encode(${str(arg(args, 0))}, '%20')`, { nullable: false });
  }),
  punycode_from_string: fn((args) => expr("string", sql`kql_punycode_from_string(${str(arg(args, 0))})`)),
  punycode_to_string: fn((args) => expr("string", sql`kql_punycode_to_string(${str(arg(args, 0))})`)),
  punycode_domain_from_string: fn((args) => expr("string", sql`kql_domain_from_punycode(${str(arg(args, 0))})`)),
  punycode_domain_to_string: fn((args) => expr("string", sql`kql_domain_to_punycode(${str(arg(args, 0))})`)),
  url_decode: fn((args) => expr("string", sql`kql_url_decode(${str(arg(args, 0))})`)),
  hash_md5: digest((value) => sql`md5(${value})`),
  hash_sha1: digest((value) => sql`sha1(${value})`),
  hash_sha256: digest((value) => sql`sha256(${value})`),
  hash: fn(hash),
  hash_xxhash64: fn(hash),
  __hash_xxh64: no("it is internal: write hash_xxhash64()"),
  __hash_crc32: no("it is internal"),
  __hash_djb2: no("it is internal"),
  __hash_many_crc32: no("it is internal"),
  hash_combine: no(COMBINING),
  hash_many: no(COMBINING),
  zlib_compress_to_base64_string: no(COMPRESSION),
  zlib_decompress_from_base64_string: no(COMPRESSION),
  gzip_compress_to_base64_string: no(COMPRESSION),
  gzip_decompress_from_base64_string: no(COMPRESSION),
  __lz4_compress_dynamic_array_to_base64_string: no("it is internal"),
};

function base64Encoded(args: readonly Expr[]): Expr {
  return expr("string", sql`to_base64(encode(${str(arg(args, 0))}))`, { nullable: false });
}

function base64Decoded(args: readonly Expr[]): Expr {
  return expr("string", sql`kql_base64_text(${str(arg(args, 0))})`);
}

function digest(own: (value: Expr) => Sql): FunctionRule {
  return fn((args) => expr("string", own(str(arg(args, 0))), { nullable: false }));
}

/** XXH64 of the bytes: of a text in UTF-8, of a moment or a span its ticks. */
function hash(args: readonly Expr[]): Expr {
  const value = arg(args, 0);
  const isNullable = value.nullable && value.type !== "string";
  const own = isNullable ? sql`CASE WHEN ${value} IS NOT NULL THEN ${hashOf(value)} END` : hashOf(value);
  if (args[1] === undefined) return expr("long", own, { nullable: isNullable });
  return expr("long", sql`kql_modulo(${own}, ${num(args[1], "long")})`);
}

function hashOf(value: Expr): Sql {
  const { type } = value;
  if (type === "datetime") return sql`kql_xxhash64_long(epoch_ns(${value}) // 100 + 621355968000000000)`;
  const isWhole = type === "int" || type === "long" || type === "timespan" || type === "bool";
  return isWhole ? sql`kql_xxhash64_long(CAST(${value} AS BIGINT))` : sql`kql_xxhash64(${str(value)})`;
}
