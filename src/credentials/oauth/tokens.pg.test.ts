import { randomBytes } from "node:crypto";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { ADMIN, by } from "../../auth/access.test-kit.ts";
import { AuditLog } from "../../auth/audit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../../catalog/postgres/postgres.test-kit.ts";
import type { CatalogDatabase } from "../../catalog/catalog-database.ts";
import { systemClock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { Credentials } from "../credentials.ts";
import { keyringOf } from "../../auth/sealing/keyring.ts";
import { OAuthFlows } from "./flows.ts";
import { APP, at, directoryOf, startProvider, TestBrowser, type TestProvider } from "./provider.test-kit.ts";

const BASE = "http://engine.test";
const CALLBACK = `${BASE}/v1/oauth/google/callback`;
const PROCESSES = 2;
const USES = 25;

describe.skipIf(lacks("PostgreSQL"))("tokens that several processes use", () => {
  let server: TestDatabases;
  let provider: TestProvider;
  let catalog: CatalogDatabase;
  let catalogUrl: string;
  const key = randomBytes(32).toString("base64");
  beforeAll(async () => {
    server = await sharedTestServer();
    provider = await startProvider([CALLBACK]);
    catalogUrl = await server.createDatabase();
    catalog = await openTestCatalog(catalogUrl);
  });
  afterAll(async () => {
    await catalog.close();
    await provider.close();
    await server.stop();
  });

  /** Connects an account, whose first access token lasts that long. */
  async function connect(ttlSecs: number): Promise<string> {
    const { records } = catalog;
    const common = {
      records,
      random: systemRandom,
      newId: uuidV7Source(systemClock, systemRandom),
      clock: systemClock,
    };
    const audit = new AuditLog(records, common.newId);
    const keyring = keyringOf(key, []);
    const credentials = new Credentials({ ...common, audit, keyring });
    const flows = new OAuthFlows({
      ...common,
      audit,
      keyring,
      credentials,
      log: silentLog,
      redirectBase: BASE,
      providers: directoryOf(systemClock, { google: at(provider.url) }, { google: APP }),
    });
    const request = {
      provider: "google",
      sourceType: "drive",
      scopes: undefined,
      label: undefined,
      app: undefined,
    } as const;
    const { authorizeUrl, state } = await flows.start(request, by(ADMIN));
    const answered = new URL(await new TestBrowser().walk(authorizeUrl, CALLBACK));
    provider.setTokenTtl(ttlSecs);
    const answer = { code: answered.searchParams.get("code") ?? "", issuer: provider.url };
    const result = await flows.finish("google", state, answer, { address: "", requestId: "" });
    provider.setTokenTtl(3_600);
    if (result.status !== "done") throw new Error(`not connected: ${JSON.stringify(result)}`);
    return result.credentialId;
  }

  /** What each use got, in processes that begin together. */
  async function useEverywhere(credentialId: string): Promise<string[]> {
    const file = fileURLToPath(new URL("fresh-tokens-child.test-kit.ts", import.meta.url));
    const args = [
      "--disable-warning=ExperimentalWarning",
      file,
      catalogUrl,
      provider.url,
      key,
      credentialId,
      String(USES),
    ];
    const children = Array.from({ length: PROCESSES }, () => {
      const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
      return {
        child,
        lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
        ended: once(child, "close"),
      };
    });
    for (const { lines } of children) expect((await lines.next()).value).toBe("ready");
    for (const { child } of children) child.stdin.write("go\n");
    const got = await Promise.all(children.map(async ({ lines }) => String((await lines.next()).value)));
    await Promise.all(children.map(({ ended }) => ended));
    return got.flatMap((line) => JSON.parse(line) as string[]);
  }

  it("renews an ended one with one request, whoever of them sends it", async () => {
    const id = await connect(1);
    const before = provider.tokenRequests();
    const got = await useEverywhere(id);
    expect(got).toHaveLength(PROCESSES * USES);
    expect(new Set(got).size).toBe(1);
    expect(got[0]).toMatch(/^[\w-]{20,}$/);
    expect(provider.tokenRequests() - before).toBe(1);
    const rows = await catalog.records.rows("SELECT status, version FROM credentials WHERE id = ?", [id]);
    expect(rows.map(({ status, version }) => [status, Number(version)])).toEqual([["ok", 2]]);
    // The refresh token was rotated: the next renewal takes the new one.
    expect(await useEverywhere(id)).toEqual(got);
    expect(provider.tokenRequests() - before).toBe(1);
  });

  it("marks the credential once when the provider refuses, and tells all of them", async () => {
    const id = await connect(1);
    const before = provider.tokenRequests();
    provider.answerTokensWith((response) => response.writeHead(400).end('{"error":"invalid_grant"}'));
    const got = await useEverywhere(id);
    provider.answerTokensWith(undefined);
    expect(got).toHaveLength(PROCESSES * USES);
    for (const text of got) expect(text).toMatch(/invalid_grant.*connect it again/);
    expect(provider.tokenRequests() - before).toBe(1);
  });
});
