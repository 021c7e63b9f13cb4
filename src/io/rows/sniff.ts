/** What the first bytes of an input say of it. */

/** Bytes that are enough to tell. */
export const SNIFFED_BYTES = 4;
export const PARQUET_MAGIC = Buffer.from("PAR1");
export const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** What is no text, by its first bytes. */
const FOREIGN: readonly (readonly [string, string])[] = [
  ["fffe", "UTF-16; convert it, as by `iconv -f utf-16 -t utf-8`"],
  ["feff", "UTF-16; convert it, as by `iconv -f utf-16 -t utf-8`"],
  ["425a68", "compressed by bzip2; decompress it, as by `bzcat`"],
  ["fd377a58", "compressed by xz; decompress it, as by `xzcat`"],
  ["04224d18", "compressed by lz4; decompress it, as by `lz4cat`"],
  ["504b0304", "a zip archive; unpack it"],
  ["1f8b08", "compressed twice; decompress it once"],
  ["28b52ffd", "compressed twice; decompress it once"],
  ["4f524331", "ORC, which is not read; NDJSON, CSV and Parquet are"],
  ["4f626a01", "Avro, which is not read; NDJSON, CSV and Parquet are"],
  ["4152524f", "Arrow, which is not read; NDJSON, CSV and Parquet are"],
];

/** What an input is that nothing here reads, with what to do about it; undefined for all others. */
export function foreignContent(head: Buffer): string | undefined {
  const hex = head.subarray(0, SNIFFED_BYTES).toString("hex");
  return FOREIGN.find(([magic]) => hex.startsWith(magic))?.[1];
}

export function isParquet(head: Buffer): boolean {
  return head.subarray(0, PARQUET_MAGIC.length).equals(PARQUET_MAGIC);
}

export function startsWithBom(head: Buffer): boolean {
  return head.subarray(0, BOM.length).equals(BOM);
}
