import dns from "node:dns";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { lacks } from "../../../core/gates.test-kit.ts";
import { ManualClock, systemClock } from "../../../core/clock.ts";
import { StartupError } from "../../../core/errors.ts";
import { silentLog } from "../../../core/log.ts";
import { seededRandom, systemRandom } from "../../../core/random.ts";
import { FaultyStore } from "../faulty.test-kit.ts";
import { openFilesystemStore } from "../filesystem.ts";
import type { ObjectStore } from "../objectstore.ts";
import { certificateFolder, makeCertificate } from "../../http/tls.test-kit.ts";
import { checkStore } from "./check-store.ts";
import { type Meddling, errorXml, startMeddlingProxy } from "./meddling-proxy.test-kit.ts";
import { type S3StoreOptions, openS3Store } from "./s3.ts";
import { openInNewBucket, storeOptions } from "./s3.test-kit.ts";
import { type Versitygw, findVersitygw, startVersitygw } from "./versitygw.test-kit.ts";

const program = await findVersitygw();
const QUICK = { attempts: 2, backoffMs: 5, connectTimeoutMs: 500, attemptTimeoutMs: 1_000, deadlineMs: 4_000 };
const CHECK = { prefix: "pre/fix", newId: () => "id1" };

async function failureOf(store: ObjectStore): Promise<StartupError> {
  try {
    await checkStore(store, CHECK);
  } catch (error) {
    if (error instanceof StartupError) return error;
    throw error;
  }
  throw new Error("the check passed");
}

describe.skipIf(lacks("S3 server"))("start-up check of an s3 store", () => {
  let server: Versitygw;
  let bucket: string;
  beforeAll(async () => {
    server = await startVersitygw(program ?? "");
    bucket = await server.makeBucket();
  });
  afterAll(() => server.stop());
  afterEach(() => void vi.unstubAllEnvs());

  const openWith = (changed: Partial<S3StoreOptions>) =>
    openS3Store(storeOptions(server, { bucket, limits: QUICK, ...changed }));
  const AT = () => server.endpoint;

  it("passes, and leaves nothing", async () => {
    const { store } = await openInNewBucket(server);
    await checkStore(store, CHECK);
    expect(await Array.fromAsync(store.list(""))).toEqual([]);
  });

  it("names the bucket that does not exist", async () => {
    expect(await failureOf(openWith({ bucket: "not-here" }))).toMatchObject({
      exitCode: 2,
      message: `object store: cannot write pre/fix/_check/id1: the bucket not-here does not exist at ${AT()}; make it, or correct ENGINE_OBJSTORE_BUCKET`,
    });
  });

  it("names the access key that is not known, and the secret that is not its own", async () => {
    const unknown = { ...server.credentials, accessKeyId: "nobody" };
    expect(await failureOf(openWith({ credentials: unknown }))).toMatchObject({
      exitCode: 2,
      message: `object store: cannot write pre/fix/_check/id1: at ${AT()} no access key nobody is known; correct ENGINE_OBJSTORE_ACCESS_KEY_ID`,
    });
    const wrong = { ...server.credentials, secretAccessKey: "hunter2" };
    const failure = await failureOf(openWith({ credentials: wrong }));
    expect(failure).toMatchObject({
      exitCode: 2,
      message:
        "object store: cannot write pre/fix/_check/id1: the secret key does not belong to the access key testaccess; correct ENGINE_OBJSTORE_SECRET_ACCESS_KEY",
    });
    expect(failure.message).not.toContain("hunter2");
  });

  it("names the region that the bucket is in", async () => {
    expect((await failureOf(openWith({ region: "eu-west-1" }))).message).toContain(
      "is in the region us-east-1, not in eu-west-1; correct ENGINE_OBJSTORE_REGION",
    );
  });

  it("names the endpoint where nothing listens, that has no address, that is not TLS, and that is no store", async () => {
    const messageAt = async (endpoint: string) => (await failureOf(openWith({ endpoint }))).message;
    expect(await messageAt("http://127.0.0.1:1")).toContain(
      "nothing listens at http://127.0.0.1:1 (ECONNREFUSED); check ENGINE_OBJSTORE_ENDPOINT and the network",
    );
    expect(await messageAt("http://nowhere.invalid")).toMatch(
      /the host of http:\/\/nowhere\.invalid has no address|the name service does not tell the address/,
    );
    const tls = AT().replace("http:", "https:");
    expect(await messageAt(tls)).toContain(`what answers at ${tls} does not speak TLS`);
    const page: Meddling = {
      kind: "answer",
      status: 200,
      body: "<html>hello</html>",
      headers: { "content-type": "text/html" },
    };
    for (const status of [200, 404]) {
      const web = await startMeddlingProxy(AT(), () => ({ ...page, status }));
      expect(await messageAt(web.endpoint)).toContain(`what answers at ${web.endpoint} is no S3 store`);
      await web.close();
    }
    const silent = await startMeddlingProxy(AT(), () => ({ kind: "hang" }));
    expect(await messageAt(silent.endpoint)).toContain(`the store at ${silent.endpoint} did not answer in time`);
    await silent.close();
  });

  it("names a certificate that is not trusted", async () => {
    const { certPath: cert, keyPath: key } = await makeCertificate(certificateFolder(), "localhost");
    const secure = await startVersitygw(program ?? "", { flags: ["--cert", cert, "--key", key], scheme: "https" });
    try {
      const failure = await failureOf(openWith({ endpoint: secure.endpoint, allowHttp: false }));
      expect(failure).toMatchObject({ exitCode: 2 });
      expect(failure.message).toContain(`no secure connection to ${secure.endpoint}: self-signed certificate`);
      expect(failure.message).toContain("NODE_EXTRA_CA_CERTS");
    } finally {
      await secure.stop();
    }
  });

  it("names what the credentials may not do", async () => {
    const readOnly = await startVersitygw(program ?? "", { flags: ["--readonly"] });
    try {
      await mkdir(readOnly.folderOf("engine"));
      expect((await failureOf(openWith({ endpoint: readOnly.endpoint, bucket: "engine" }))).message).toBe(
        "object store: cannot write pre/fix/_check/id1: the credentials of the access key testaccess have no permission for it in the bucket engine (Access Denied.)",
      );
    } finally {
      await readOnly.stop();
    }
  });

  it.each([
    ["GET", "list-type", "cannot list pre/fix/_check/"],
    ["GET", "id1", "cannot read back pre/fix/_check/id1"],
    ["DELETE", "id1", "cannot delete pre/fix/_check/id1"],
  ])("says which step is not permitted: %s %s", async (method, part, expected) => {
    const proxy = await startMeddlingProxy(AT(), (request) =>
      request.method === method &&
      request.url.includes(part) &&
      (part === "list-type" || !request.url.includes("list-type"))
        ? { kind: "answer", status: 403, body: errorXml("AccessDenied") }
        : undefined,
    );
    const failure = await failureOf(openWith({ endpoint: proxy.endpoint }));
    expect(failure.message).toContain(`${expected}: the credentials of the access key testaccess have no permission`);
    await proxy.close();
    await openWith({}).delete(["pre/fix/_check/id1"]);
  });

  it("tells of clocks that differ, of a session that ended, and of a bucket elsewhere", async () => {
    const messageOf = async (status: number, code: string, fields = {}) => {
      const proxy = await startMeddlingProxy(AT(), () => ({ kind: "answer", status, body: errorXml(code, fields) }));
      const { message } = await failureOf(openWith({ endpoint: proxy.endpoint }));
      await proxy.close();
      return message;
    };
    expect(await messageOf(403, "RequestTimeTooSkewed")).toContain("set this machine's clock");
    expect(await messageOf(400, "ExpiredToken")).toContain("is no longer valid (ExpiredToken); renew the credentials");
    expect(await messageOf(301, "PermanentRedirect")).toContain(
      "not in the region us-east-1; correct ENGINE_OBJSTORE_REGION",
    );
  });

  it("goes by the store's clock where this machine's is wrong", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: systemClock.nowMs() + 2 * 3_600_000 });
    try {
      const proxy = await startMeddlingProxy(AT(), () => undefined);
      await checkStore(openWith({ endpoint: proxy.endpoint }), CHECK);
      // The first answer told the time.
      expect(proxy.seen.length).toBe(7);
      await proxy.close();
    } finally {
      vi.useRealTimers();
    }
  });

  it("takes credentials from the standard chain, variables and profile files, and says when there are none", async () => {
    const folder = await mkdtemp(join(tmpdir(), "engine-profile-"));
    const { accessKeyId, secretAccessKey } = server.credentials;
    for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"]) vi.stubEnv(name, "");
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
    vi.stubEnv("AWS_CONFIG_FILE", join(folder, "config"));
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", join(folder, "credentials"));
    try {
      const failure = await failureOf(openWith({ credentials: undefined }));
      expect(failure).toMatchObject({ exitCode: 2 });
      expect(failure.message).toContain("no credentials were found: set ENGINE_OBJSTORE_ACCESS_KEY_ID and");

      vi.stubEnv("AWS_ACCESS_KEY_ID", accessKeyId);
      vi.stubEnv("AWS_SECRET_ACCESS_KEY", secretAccessKey);
      await checkStore(openWith({ credentials: undefined }), CHECK);

      vi.stubEnv("AWS_ACCESS_KEY_ID", "");
      vi.stubEnv("AWS_SECRET_ACCESS_KEY", "");
      vi.stubEnv("AWS_PROFILE", "other");
      // The SDK reads a file once.
      vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", join(folder, "other"));
      const profile = `[other]\naws_access_key_id=${accessKeyId}\naws_secret_access_key=${secretAccessKey}\n`;
      await writeFile(join(folder, "other"), profile);
      await checkStore(openWith({ credentials: undefined }), CHECK);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("sends nothing without TLS where that is forbidden, whoever named the endpoint", async () => {
    const proxy = await startMeddlingProxy(AT(), () => undefined);
    expect((await failureOf(openWith({ allowHttp: false, endpoint: proxy.endpoint }))).message).toContain(
      "ENGINE_OBJSTORE_ALLOW_HTTP=false forbids",
    );
    vi.stubEnv("AWS_ENDPOINT_URL_S3", proxy.endpoint);
    expect((await failureOf(openWith({ allowHttp: false, endpoint: undefined }))).message).toContain("forbids");
    expect(proxy.seen).toEqual([]);
    await checkStore(openWith({ endpoint: undefined }), CHECK);
    expect(proxy.seen.length).toBeGreaterThan(4);
    await proxy.close();
  });

  it("names the bucket in the host where the path is not to", async () => {
    const domain = await startVersitygw(program ?? "", { flags: ["--virtual-domain", "s3.test"] });
    // Names below a domain of one's own, as a wildcard in DNS gives them.
    const lookup = vi.spyOn(dns, "lookup");
    lookup.mockImplementation(((_name: string, options: { all?: boolean }, done: (...found: unknown[]) => void) => {
      const address = { address: "127.0.0.1", family: 4 };
      if (options.all === true) done(null, [address]);
      else done(null, address.address, address.family);
    }) as typeof dns.lookup);
    try {
      const bucket = await domain.makeBucket();
      const endpoint = domain.endpoint.replace("127.0.0.1", "s3.test");
      await checkStore(openWith({ endpoint, bucket, pathStyle: false }), CHECK);
      expect(lookup.mock.calls[0]?.[0]).toBe(`${bucket}.s3.test`);
    } finally {
      lookup.mockRestore();
      await domain.stop();
    }
  });

  it("ends when it is told to", async () => {
    const proxy = await startMeddlingProxy(AT(), () => ({ kind: "hang" }));
    const controller = new AbortController();
    const check = checkStore(openWith({ endpoint: proxy.endpoint }), { ...CHECK, signal: controller.signal });
    await expect.poll(() => proxy.seen.length).toBe(1);
    controller.abort(new Error("stopped"));
    await expect(check).rejects.toThrow("stopped");
    await proxy.close();
  });
});

describe("start-up check of any store", () => {
  it("names the step that fails, and does not leave its object", async () => {
    const root = await mkdtemp(join(tmpdir(), "engine-check-"));
    const inner = await openFilesystemStore({ root, random: systemRandom, log: silentLog });
    await checkStore(inner, CHECK);
    for (const [operation, step] of [
      ["put", "cannot write pre/fix/_check/id1"],
      ["get", "cannot read back pre/fix/_check/id1"],
      ["list", "cannot list pre/fix/_check/"],
      ["delete", "cannot delete pre/fix/_check/id1"],
      ["head", "cannot see that pre/fix/_check/id1 is deleted"],
    ] as const) {
      const store = new FaultyStore({ inner, clock: new ManualClock(), random: seededRandom(1) });
      store.script({ operation, fault: { kind: "fail_before", error: new Error("because") } });
      expect(await failureOf(store)).toMatchObject({ exitCode: 1, message: `object store: ${step}: because` });
      const left = operation === "delete" ? [`${CHECK.prefix}/_check/id1`] : [];
      expect((await Array.fromAsync(inner.list(""))).map(({ key }) => key)).toEqual(left);
      await inner.delete(left);
    }
    await rm(root, { recursive: true });
  });
});
