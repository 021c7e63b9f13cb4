import { truncateSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ListMultipartUploadsCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../core/gates.test-kit.ts";
import { seededRandom } from "../../../core/random.ts";
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

const MIB = 2 ** 20;
const bytes = new Uint8Array(40 * MIB);
seededRandom(3).fill(bytes.subarray(0, 100_000));
bytes.copyWithin(30 * MIB, 0, 100_000);

describe.skipIf(lacks("S3 server"))("objects in parts", () => {
  let server: Versitygw;
  let proxy: MeddlingProxy;
  beforeAll(async () => (server = await sharedVersitygw()));
  afterAll(() => server.stop());
  afterEach(() => proxy.close());

  async function openBehind(meddle: (request: SeenRequest, index: number) => Meddling | undefined) {
    proxy = await startMeddlingProxy(server.endpoint, meddle);
    const bucket = await server.makeBucket();
    const changed = { bucket, endpoint: proxy.endpoint, limits: { attempts: 3, backoffMs: 2 } };
    const direct = openS3Store(storeOptions(server, { bucket }));
    return { store: openS3Store(storeOptions(server, changed)), direct, bucket };
  }

  /** Nothing of an upload that failed is in the bucket: no object, no upload, no file. */
  async function expectNothing(bucket: string): Promise<void> {
    const client = new S3Client({
      endpoint: server.endpoint,
      region: server.region,
      credentials: server.credentials,
      forcePathStyle: true,
    });
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
    client.destroy();
    expect(Uploads).toEqual([]);
    const files = await readdir(server.folderOf(bucket), { recursive: true, withFileTypes: true });
    expect(files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name))).toEqual([]);
  }

  const isPart = ({ method, url }: SeenRequest) => method === "PUT" && url.includes("partNumber=");
  const isEnd = ({ method, url }: SeenRequest) => method === "POST" && url.includes("uploadId=");

  it("come back as they were, and in ranges", async () => {
    const { store } = await openBehind(() => undefined);
    await store.put("a", bytes);
    expect(proxy.seen.filter(isPart).length).toBe(5);
    expect(Buffer.compare(await store.get("a"), bytes)).toBe(0);
    const range = await store.get("a", { offset: 30 * MIB - 5, length: 1_000 });
    expect(Buffer.compare(range, bytes.subarray(30 * MIB - 5, 30 * MIB + 995))).toBe(0);
  });

  it("are read from a file, and nothing is left of one that was cut short meanwhile", async () => {
    const folder = await mkdtemp(join(tmpdir(), "engine-multipart-"));
    const path = join(folder, "file");
    await writeFile(path, bytes);
    let lost = 0;
    const { store, bucket } = await openBehind((request) => {
      if (request.url.startsWith(`/${bucket}/b?uploads`)) truncateSync(path, 20 * MIB);
      return isEnd(request) && lost++ === 0 ? { kind: "lose_answer" } : undefined;
    });
    await store.putFile("a", path);
    expect(proxy.seen.filter(isEnd).length).toBe(2);
    expect(Buffer.compare(await store.get("a"), bytes)).toBe(0);
    await store.delete(["a"]);

    // One that was cut short meanwhile is no object.
    await expect(store.putFile("b", path)).rejects.toThrow("the file became shorter while it was uploaded");
    await expectNothing(bucket);
    await rm(folder, { recursive: true });
  });

  it("go up although each part fails at first", async () => {
    const failed = new Set<string>();
    const { store } = await openBehind((request) => {
      if (!isPart(request) || failed.has(request.url)) return undefined;
      failed.add(request.url);
      return failed.size % 2 === 0 ? { kind: "cut" } : { kind: "answer", status: 503 };
    });
    await store.put("a", bytes);
    expect(failed.size).toBe(5);
    expect(Buffer.compare(await store.get("a"), bytes)).toBe(0);
  });

  it("leave nothing when the caller leaves in the middle", async () => {
    const controller = new AbortController();
    const { store, bucket } = await openBehind((request) => {
      if (isPart(request) && request.url.includes("partNumber=4")) controller.abort(new Error("client left"));
      return undefined;
    });
    await expect(store.put("a", bytes, { signal: controller.signal })).rejects.toThrow("client left");
    expect(await store.head("a")).toBeUndefined();
    await expectNothing(bucket);
  });

  it("leave nothing when a part fails for good", async () => {
    const { store, bucket } = await openBehind((request) =>
      request.url.includes("partNumber=3") ? { kind: "answer", status: 503, body: errorXml("SlowDown") } : undefined,
    );
    await expect(store.put("a", bytes)).rejects.toThrow("failed to put a in 3 attempts: SlowDown, HTTP 503");
    await expectNothing(bucket);
  });

  it("are there when only the answer about the end was lost", async () => {
    let lost = 0;
    const { store } = await openBehind((request) =>
      isEnd(request) && lost++ === 0 ? { kind: "lose_answer" } : undefined,
    );
    await store.put("a", bytes);
    expect(proxy.seen.filter(isEnd).length).toBe(2);
    expect(Buffer.compare(await store.get("a"), bytes)).toBe(0);
  });

  it("are not taken for an older object when the upload is gone", async () => {
    const { store, direct } = await openBehind((request) => {
      if (!isEnd(request)) return undefined;
      const earlier = proxy.seen.filter(isEnd).length > 1;
      return earlier ? { kind: "answer", status: 404, body: errorXml("NoSuchUpload") } : { kind: "cut" };
    });
    const other = new Uint8Array(bytes);
    other[0] = (other[0] ?? 0) ^ 1;
    await direct.put("a", other);
    await expect(store.put("a", bytes)).rejects.toThrow("NoSuchUpload");
    expect(Buffer.compare(await direct.get("a"), other)).toBe(0);
  });
});
