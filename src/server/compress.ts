import { Readable } from "node:stream";
import { promisify } from "node:util";
import { constants, createGzip, createZstdCompress, gzip, zstdCompress } from "node:zlib";
import type { HttpRequest, HttpResponse } from "../io/http/http.ts";

/**
 * Answers with a `Content-Encoding` (RFC 9110 §8.4, §12.5.3): `zstd`, else `gzip`, as the client's `Accept-Encoding` has
 * it. For routes whose row says so: not for those that answer with secrets beside what a client chose (BREACH), with
 * ranges, or with what others wrote.
 *
 * The work is done by zlib on libuv's threads, at the lowest level: an answer is compressed once and sent once, and the
 * processor is for queries. A streamed body stays streamed, at the client's pace; a short one has its length.
 */
export function compressed(request: HttpRequest, response: HttpResponse): HttpResponse | Promise<HttpResponse> {
  response.headers["Vary"] = withName(response.headers["Vary"]);
  const accepted = request.header("accept-encoding");
  // Most small queries come from programs that say nothing: they wait for nothing here.
  return accepted === undefined ? response : encoded(request, response, codingFor(accepted));
}

async function encoded(request: HttpRequest, response: HttpResponse, choice: Choice): Promise<HttpResponse> {
  const isBare = response.body !== undefined && response.headers["Content-Encoding"] === undefined;
  if (choice.coding === undefined || !isBare || request.method === "HEAD" || !isCompressible(response)) return response;
  const { coding, isForced } = choice;
  const { first, rest } = await beginningOf(response.body ?? "");
  const leastBytes = isForced ? 1 : LEAST_BYTES;
  if (rest === undefined && first.byteLength < leastBytes) return { ...response, body: first };
  const { "Content-Length": _length, ...headers } = response.headers;
  const body = rest === undefined ? await WHOLE[coding](first) : streamed(coding, joined(first, rest));
  return { ...response, headers: { ...headers, "Content-Encoding": coding }, body };
}

/** `isForced` where the client takes no answer as it is. */
type Choice = { coding: Coding | undefined; isForced: boolean };

export type Coding = "zstd" | "gzip";

/** Fewer do not get smaller by what is worth a call: they are one packet in any case. */
const LEAST_BYTES = 1_024;

/** The server's own preference, among what a client likes equally. */
const CODINGS: readonly Coding[] = ["zstd", "gzip"];
const ALIASES: Readonly<Record<Coding, readonly string[]>> = { zstd: ["zstd"], gzip: ["gzip", "x-gzip"] };

/** The coding that the client likes best, if it likes one as much as none. */
export function codingFor(header: string): Choice {
  const weights = weightsIn(header);
  const any = weights.get("*");
  const identity = weights.get("identity") ?? (any === 0 ? 0 : undefined);
  let best: { coding: Coding | undefined; weight: number } = { coding: undefined, weight: 0 };
  for (const coding of CODINGS) {
    const known = ALIASES[coding].map((name) => weights.get(name)).find((weight) => weight !== undefined);
    const weight = known ?? any ?? 0;
    if (weight > best.weight) best = { coding, weight };
  }
  const isLess = identity !== undefined && identity > best.weight;
  return { coding: isLess ? undefined : best.coding, isForced: identity === 0 };
}

/** The weight of each coding that an `Accept-Encoding` names, by its name in small letters; 0 for one that is not good. */
export function weightsIn(header: string): ReadonlyMap<string, number> {
  return new Map(header.split(",").map(weightOf));
}

function weightOf(item: string): readonly [name: string, weight: number] {
  const [name = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
  const quality = parameters.find((parameter) => parameter.startsWith("q="));
  const weight = quality === undefined ? 1 : Number(quality.slice(2));
  return [name, weight >= 0 && weight <= 1 ? weight : 0];
}

/** Parquet is compressed inside. */
function isCompressible({ status, headers }: HttpResponse): boolean {
  return status === 200 && !(headers["Content-Type"] ?? "").startsWith("application/vnd.apache.parquet");
}

function withName(vary: string | undefined): string {
  return vary === undefined ? "Accept-Encoding" : `${vary}, Accept-Encoding`;
}

type Pieces = AsyncIterator<Uint8Array>;

/** The first piece, and what comes after it; no `rest` means that it was all. */
async function beginningOf(
  body: NonNullable<HttpResponse["body"]>,
): Promise<{ first: Uint8Array; rest?: { second: Uint8Array; pieces: Pieces } }> {
  if (typeof body === "string") return { first: Buffer.from(body) };
  if (body instanceof Uint8Array) return { first: body };
  const pieces = body[Symbol.asyncIterator]();
  const first = await pieces.next();
  if (first.done === true) return { first: Buffer.alloc(0) };
  const second = await pieces.next();
  return second.done === true ? { first: first.value } : { first: first.value, rest: { second: second.value, pieces } };
}

/** Not a generator: one that was never started would not pass its `return` on. */
function joined(
  first: Uint8Array,
  { second, pieces }: { second: Uint8Array; pieces: Pieces },
): AsyncIterable<Uint8Array> {
  const ready = [first, second];
  const iterator: Pieces = {
    next: async () => {
      const value = ready.shift();
      return value === undefined ? await pieces.next() : { done: false, value };
    },
    return: async () => {
      await pieces.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

/** `params` of zstd: windows up to what every decoder takes (RFC 9659). */
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
const GZIP = { level: 1 };

const gzipAll = promisify<Uint8Array, typeof GZIP, Buffer>(gzip);
const zstdAll = promisify<Uint8Array, typeof ZSTD, Buffer>(zstdCompress);

const WHOLE: Readonly<Record<Coding, (bytes: Uint8Array) => Promise<Uint8Array>>> = {
  zstd: (bytes) => zstdAll(bytes, ZSTD),
  gzip: (bytes) => gzipAll(bytes, GZIP),
};

const STREAMS = { zstd: () => createZstdCompress(ZSTD), gzip: () => createGzip(GZIP) };

/** A source that fails destroys the stream, so that the answer is torn and not taken for whole; so does who leaves. */
function streamed(coding: Coding, source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const readable = Readable.from(source, { objectMode: true, highWaterMark: 1 });
  const stream = STREAMS[coding]();
  readable.on("error", (error) => stream.destroy(error));
  stream.on("close", () => readable.destroy());
  readable.pipe(stream);
  const pieces: Pieces = stream[Symbol.asyncIterator]();
  const iterator: Pieces = {
    next: () => pieces.next(),
    return: async () => {
      stream.destroy();
      readable.destroy();
      await pieces.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}
