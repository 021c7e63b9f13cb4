import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { HttpRequest, HttpResponse } from "../io/http/http.ts";
import { codingFor, compressed } from "./compress.ts";

const request = (accepted: string | undefined, method = "GET"): HttpRequest =>
  ({ method, header: (name: string) => (name === "accept-encoding" ? accepted : undefined) }) as unknown as HttpRequest;

const LONG = Buffer.from("a row like all the others\n".repeat(1_000));

/** A body in pieces, which counts what is taken of it and whether it was closed. */
function pieces(count: number, failAt = Infinity) {
  const seen = { taken: 0, closed: false };
  const iterator: AsyncIterator<Uint8Array> = {
    next: async () => {
      if (seen.taken === failAt) throw new Error("the source fails");
      if (seen.taken === count) return { done: true, value: undefined };
      seen.taken++;
      return { done: false, value: LONG };
    },
    return: async () => {
      seen.closed = true;
      return { done: true, value: undefined };
    },
  };
  return { seen, body: { [Symbol.asyncIterator]: () => iterator } };
}

async function bytesOf({ body }: HttpResponse): Promise<Buffer> {
  if (typeof body === "string" || body === undefined) return Buffer.from(body ?? "");
  if (body instanceof Uint8Array) return Buffer.from(body);
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

describe("the coding", () => {
  test.each([
    ["", undefined],
    ["identity", undefined],
    ["gzip", "gzip"],
    ["x-gzip", "gzip"],
    ["GZIP", "gzip"],
    ["zstd", "zstd"],
    ["gzip, deflate", "gzip"],
    ["gzip, deflate, br, zstd", "zstd"],
    ["gzip;q=1.0, zstd;q=0.5", "gzip"],
    ["gzip;q=0.5, zstd;q=0.5", "zstd"],
    ["zstd;q=0, gzip", "gzip"],
    ["gzip;q=0", undefined],
    ["*", "zstd"],
    ["*;q=0.1, zstd;q=0", "gzip"],
    ["*;q=0", undefined],
    ["identity, gzip;q=0.5", undefined],
    ["identity;q=0.5, gzip;q=0.5", "gzip"],
    ["identity;q=0, gzip;q=0.1", "gzip"],
    ["br, deflate", undefined],
    ["gzip;q=2", undefined],
    ["gzip;q=x", undefined],
    [" gzip ; q=0.8 ,, ", "gzip"],
  ])("of Accept-Encoding %j is %s", (header, coding) => {
    expect(codingFor(header).coding).toBe(coding);
  });
});

describe("an answer", () => {
  const answer = (body: HttpResponse["body"], headers = {}): HttpResponse => ({
    status: 200,
    headers: { "Content-Type": "application/x-ndjson", Vary: "Accept", ...headers },
    body: body ?? "",
  });

  test.each([
    ["gzip", gunzipSync],
    ["zstd", zstdDecompressSync],
  ] as const)("in %s is the same bytes, whole or streamed", async (coding, decode) => {
    for (const body of [LONG.toString(), LONG, pieces(1).body, pieces(2).body, pieces(40).body]) {
      const length = { "Content-Length": "1" };
      const result = await compressed(request(coding), answer(body, body === LONG ? length : {}));
      expect(result.headers).toEqual({
        "Content-Type": "application/x-ndjson",
        Vary: "Accept, Accept-Encoding",
        "Content-Encoding": coding,
      });
      const bytes = await bytesOf(result);
      expect(bytes.length).toBeLessThan(LONG.length);
      expect(decode(bytes).subarray(0, LONG.length).equals(LONG)).toBe(true);
      expect(decode(bytes).length % LONG.length).toBe(0);
    }
  });

  test("that is small stays as it is, unless the client takes no other", async () => {
    for (const body of ["", "tiny", Buffer.from("tiny")]) {
      const small = await compressed(request(body === "" ? undefined : "gzip, zstd"), answer(body));
      expect(small.headers).toMatchObject({ Vary: "Accept, Accept-Encoding" });
      expect(small.headers["Content-Encoding"]).toBeUndefined();
      expect(await bytesOf(small)).toEqual(Buffer.from(body));
    }
    const forced = await compressed(request("gzip, identity;q=0"), answer("tiny"));
    expect(gunzipSync(await bytesOf(forced)).toString()).toBe("tiny");
    const empty = await compressed(request("gzip, identity;q=0"), answer(pieces(0).body));
    expect(await bytesOf(empty)).toEqual(Buffer.alloc(0));
  });

  test.each<[string, HttpRequest, Partial<HttpResponse>]>([
    ["to HEAD", request("gzip", "HEAD"), {}],
    ["that is encoded already", request("gzip"), { headers: { "Content-Encoding": "br" } }],
    ["that is a part", request("gzip"), { status: 206 }],
    ["that is Parquet", request("gzip"), { headers: { "Content-Type": "application/vnd.apache.parquet" } }],
    ["without a body", request("gzip"), { status: 204, body: undefined as unknown as string }],
  ])("%s is left alone", async (_what, asked, response) => {
    const given: HttpResponse = { ...answer(LONG), ...response };
    const result = await compressed(asked, given);
    expect(result.body).toBe(given.body);
    expect(result.headers["Content-Encoding"]).toBe(given.headers["Content-Encoding"]);
  });

  test("is made no faster than the client takes it, and closed when the client leaves", async () => {
    const { seen, body } = pieces(10_000);
    const result = await compressed(request("zstd"), answer(body));
    const reader = (result.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    await reader.next();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(seen.taken).toBeLessThan(10_000);
    await reader.return?.();
    await expect.poll(() => seen.closed).toBe(true);
    const unread = pieces(10);
    const left = await compressed(request("gzip"), answer(unread.body));
    await (left.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]().return?.();
    await expect.poll(() => unread.seen.closed).toBe(true);
  });

  test("whose source fails is torn, not ended", async () => {
    const result = await compressed(request("gzip"), answer(pieces(10, 5).body));
    await expect(bytesOf(result)).rejects.toThrow("the source fails");
    await expect(compressed(request("gzip"), answer(pieces(10, 0).body))).rejects.toThrow("the source fails");
  });
});
