import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../core/gates.test-kit.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { ObjectNotFound } from "../objectstore.ts";
import {
  type Meddling,
  type MeddlingProxy,
  type SeenRequest,
  errorXml,
  startMeddlingProxy,
} from "./meddling-proxy.test-kit.ts";
import { openS3Store } from "./s3.ts";
import { storeOptions } from "./s3.test-kit.ts";
import { sharedVersitygw, type Versitygw } from "./versitygw.test-kit.ts";

describe.skipIf(lacks("S3 server"))("s3 store, and stores that answer otherwise", () => {
  let server: Versitygw;
  let proxy: MeddlingProxy;
  beforeAll(async () => (server = await sharedVersitygw()));
  afterAll(() => server.stop());
  afterEach(() => proxy.close());

  async function openBehind(meddle: (request: SeenRequest, index: number) => Meddling | undefined) {
    proxy = await startMeddlingProxy(server.endpoint, meddle);
    const bucket = await server.makeBucket();
    const metrics = createMetrics();
    const changed = { bucket, metrics, endpoint: proxy.endpoint, limits: { attempts: 3, backoffMs: 2 } };
    return { store: openS3Store(storeOptions(server, changed)), bucket, metrics };
  }

  const isBulkDelete = ({ method, url }: SeenRequest) => method === "POST" && url.includes("delete");
  const keysOf = async (store: ReturnType<typeof openS3Store>, prefix = "") =>
    (await Array.fromAsync(store.list(prefix))).map(({ key }) => key);

  describe("delete", () => {
    const keys = ["a/1", "a/2", "a/3", "a/4"];
    const deleteErrors = (errors: Record<string, string>) => {
      const rows = Object.entries(errors).map(
        ([key, code]) => `<Error><Key>${key}</Key><Code>${code}</Code><Message>no</Message></Error>`,
      );
      return `<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${rows.join("")}</DeleteResult>`;
    };

    it.each([400, 405, 501])("goes key by key where the store has no request for many (HTTP %i)", async (status) => {
      const { store } = await openBehind((request) =>
        isBulkDelete(request) ? { kind: "answer", status, body: errorXml("NotImplemented") } : undefined,
      );
      for (let round = 0; round < 2; round++) {
        for (const key of keys) await store.put(key, Buffer.from("x"));
        await store.delete([...keys, "a/none"]);
        expect(await keysOf(store)).toEqual([]);
      }
      // It is not asked again for what it does not have.
      expect(proxy.seen.filter(isBulkDelete).length).toBe(1);
    });

    it("asks again for the keys that the store was too busy for, and for no others", async () => {
      const asked: number[] = [];
      const { store } = await openBehind((request) => {
        if (!isBulkDelete(request)) return undefined;
        asked.push(Number(request.headers["content-length"]));
        if (asked.length > 1) return undefined;
        return { kind: "answer", status: 200, body: deleteErrors({ "a/2": "SlowDown", "a/4": "InternalError" }) };
      });
      for (const key of keys) await store.put(key, Buffer.from("x"));
      await store.delete(keys);
      // The first answer was ours: nothing was deleted by it.
      expect(await keysOf(store)).toEqual(["a/1", "a/3"]);
      expect(asked.length).toBe(2);
      expect(asked[1]).toBeLessThan(asked[0] ?? 0);
    });

    it("tells all that could not be deleted", async () => {
      const answers = [
        { "a/1": "AccessDenied", "a/3": "SlowDown", "a/4": "NoSuchKey" },
        { "a/3": "SlowDown" },
        { "a/3": "SlowDown" },
      ];
      const { store } = await openBehind((_request, index) => ({
        kind: "answer",
        status: 200,
        body: deleteErrors(answers[index] ?? {}),
      }));
      const outcome = store.delete(keys);
      await expect(outcome).rejects.toThrow(
        "2 of 4 objects could not be deleted: a/1 (AccessDenied: no), a/3 (the object store failed to delete a/1 and 3 more in 3 attempts: SlowDown",
      );
      await expect(outcome).rejects.toMatchObject({ code: "unavailable" });
      expect(proxy.seen.length).toBe(3);
    });

    it("tries every batch before it fails", async () => {
      let batches = 0;
      const { store } = await openBehind((request) =>
        isBulkDelete(request) && batches++ === 0
          ? { kind: "answer", status: 403, body: errorXml("AccessDenied") }
          : undefined,
      );
      await store.put("z/last", Buffer.from("x"));
      const many = Array.from({ length: 1_000 }, (_, i) => `m/${i}`);
      await expect(store.delete([...many, "z/last", "z/none"])).rejects.toThrow(
        "1000 of 1002 objects could not be deleted",
      );
      expect(await keysOf(store)).toEqual([]);
    });
  });

  describe("list", () => {
    it("does not show what is no object of ours", async () => {
      const { store, bucket } = await openBehind(() => undefined);
      await store.put("a/b", Buffer.from("x"));
      await mkdir(join(server.folderOf(bucket), "a/.hidden"));
      await writeFile(join(server.folderOf(bucket), "a/.hidden/x"), "");
      await writeFile(join(server.folderOf(bucket), "a/new\nline"), "");
      expect(await keysOf(store)).toEqual(["a/b"]);
    });

    it("refuses a store that does not keep the order, or does not begin where it was told to", async () => {
      let reverse = true;
      const { store } = await openBehind(({ url }) => {
        if (!url.includes("list-type")) return undefined;
        return reverse
          ? { kind: "rewrite", rewrite: (body) => body.replace("<Key>a</Key>", "<Key>c</Key>") }
          : { kind: "rewrite", rewrite: (body) => body.replace("<Key>b</Key>", "<Key>a</Key>") };
      });
      await store.put("a", Buffer.from("x"));
      await store.put("b", Buffer.from("x"));
      await expect(keysOf(store)).rejects.toThrow("out of order: b after c");
      reverse = false;
      await expect(Array.fromAsync(store.list("", { startAfter: "a" }))).rejects.toThrow("out of order: a after a");
    });

    it("refuses a page that does not say where the next one begins", async () => {
      const { store } = await openBehind(({ url }) =>
        url.includes("list-type")
          ? { kind: "rewrite", rewrite: (body) => body.replace(/<IsTruncated>false/, "<IsTruncated>true") }
          : undefined,
      );
      await expect(keysOf(store)).rejects.toMatchObject({ code: "unavailable" });
    });

    it("tries a page again, and goes on where it was", async () => {
      let pages = 0;
      const { store } = await openBehind(({ url }) =>
        url.includes("list-type") && pages++ % 2 === 0 ? { kind: "cut_answer" } : undefined,
      );
      const keys = Array.from({ length: 1_003 }, (_, i) => `k${String(i).padStart(4, "0")}`);
      await Promise.all(keys.map((key) => store.put(key, Buffer.from("x"))));
      expect(await keysOf(store)).toEqual(keys);
      expect(pages).toBe(4);
    });
  });

  describe("get", () => {
    it("refuses a whole object in the place of a range, and a range that is another", async () => {
      const ranges: unknown[] = [];
      const { store } = await openBehind(({ method, headers }, index) => {
        if (method !== "GET") return undefined;
        ranges.push(headers.range);
        const answers = [
          { status: 200, headers: {} },
          { status: 206, headers: { "content-range": "bytes 3-5/10" } },
          { status: 206, headers: { "content-range": "bytes 2-9/10" } },
        ];
        return { kind: "answer", body: "234", ...answers[index - 1] } as Meddling;
      });
      await store.put("a", Buffer.from("0123456789"));
      for (let i = 0; i < 3; i++) {
        await expect(store.get("a", { offset: 2, length: 3 })).rejects.toThrow(
          "another length than what was asked for",
        );
      }
    });

    it("tells a missing object from a missing bucket", async () => {
      const { store } = await openBehind(() => undefined);
      await expect(store.get("a")).rejects.toThrow(ObjectNotFound);
      expect(await store.head("a")).toBeUndefined();
      const elsewhere = openS3Store(storeOptions(server, { bucket: "not-here" }));
      await expect(elsewhere.get("a")).rejects.toThrow("NoSuchBucket");
      await expect(elsewhere.head("a")).rejects.toThrow("NoSuchBucket");
      await expect(elsewhere.get("a", { length: 0 })).rejects.toThrow("NoSuchBucket");
    });
  });

  it("counts requests by kind and outcome, bytes and durations", async () => {
    const { store, metrics } = await openBehind((_request, index) =>
      index === 0 ? { kind: "answer", status: 503 } : undefined,
    );
    await store.put("a", Buffer.from("12345"));
    await store.get("a");
    await store.get("a", { length: 2 });
    await expect(store.get("b")).rejects.toThrow(ObjectNotFound);
    await keysOf(store);
    await store.delete(["a"]);
    const { values } = await metrics.objstoreRequests.get();
    const counts = Object.fromEntries(values.map(({ labels, value }) => [`${labels.kind} ${labels.outcome}`, value]));
    expect(counts).toEqual({
      "put throttled": 1,
      "put ok": 1,
      "get ok": 2,
      "get not_found": 1,
      "list ok": 1,
      "delete ok": 1,
    });
    const bytes = (await metrics.objstoreBytes.get()).values.map(({ labels, value }) => [labels.direction, value]);
    expect(Object.fromEntries(bytes)).toEqual({ out: 5, in: 7 });
    expect(await metrics.registry.metrics()).toContain('engine_objstore_request_duration_seconds_count{kind="get"} 3');
  });
});
