import { promisify } from "node:util";
import { gunzip, zstdDecompress } from "node:zlib";
import { decompressLz4 } from "./lz4.ts";
import { decompressSnappy } from "./snappy.ts";

/** How a record batch may be compressed, by the number in its attributes. */
const NAMES = ["none", "gzip", "snappy", "lz4", "zstd"] as const;

const gunzipped = promisify(gunzip);
const unzstd = promisify(zstdDecompress);

/**
 * What a record batch has, decompressed.
 * @throws Error for what is damaged, an unknown codec, or more than `maxBytes`.
 */
export async function decompress(codec: number, input: Buffer, maxBytes: number): Promise<Buffer> {
  const name = NAMES[codec];
  if (name === undefined) throw new Error(`there is no codec ${codec}`);
  switch (name) {
    case "none":
      return input;
    case "gzip":
      return await gunzipped(input, { maxOutputLength: maxBytes });
    case "snappy":
      return decompressSnappy(input, maxBytes);
    case "lz4":
      return decompressLz4(input, maxBytes);
    case "zstd":
      return await unzstd(input, { maxOutputLength: maxBytes });
  }
}
