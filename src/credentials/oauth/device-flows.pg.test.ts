import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import type { Caller } from "../../auth/caller.ts";
import { ADMIN, by } from "../../auth/access.test-kit.ts";
import { AuditLog } from "../../auth/audit.ts";
import { keyringOf } from "../../auth/sealing/keyring.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../../catalog/postgres/postgres.test-kit.ts";
import type { CatalogDatabase } from "../../catalog/catalog-database.ts";
import { systemClock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { Credentials } from "../credentials.ts";
import { DeviceFlows } from "./device-flows.ts";
import { APP, at, decideOnDevice, directoryOf, startProvider, type TestProvider } from "./provider.test-kit.ts";

const ANN = { ...ADMIN, subject: "ann", role: "write" } as const;
const NODES = 3;
const POLLS = 5;

describe.skipIf(lacks("PostgreSQL"))("a device flow that several nodes are asked about", () => {
  let server: TestDatabases;
  let provider: TestProvider;
  const catalogs: CatalogDatabase[] = [];
  const nodes: DeviceFlows[] = [];
  let credentials: Credentials;
  beforeAll(async () => {
    server = await sharedTestServer();
    provider = await startProvider(["https://engine.test/callback"]);
    const catalogUrl = await server.createDatabase();
    const keyring = keyringOf(randomBytes(32).toString("base64"), []);
    const providers = directoryOf(systemClock, { google: at(provider.url) }, { google: APP });
    for (let i = 0; i < NODES; i++) {
      const catalog = await openTestCatalog(catalogUrl);
      const { records } = catalog;
      const newId = uuidV7Source(systemClock, systemRandom);
      const audit = new AuditLog(records, newId);
      const common = { records, audit, keyring, random: systemRandom, newId, log: silentLog, providers };
      credentials = new Credentials(common);
      catalogs.push(catalog);
      nodes.push(new DeviceFlows({ ...common, credentials }));
    }
  });
  afterAll(async () => {
    for (const catalog of catalogs) await catalog.close();
    await provider.close();
    await server.stop();
  });

  function node(i: number): { flows: DeviceFlows; records: CatalogDatabase["records"] } {
    const [flows, records] = [nodes[i], catalogs[i]?.records];
    if (flows === undefined || records === undefined) throw new Error(`there is no node ${i}`);
    return { flows, records };
  }
  const [first, last] = [() => node(0).flows, () => node(NODES - 1).flows];
  /** The interval is over, by the clock of the database. */
  const later = async () =>
    node(0).records.write({ sql: "UPDATE oauth_device_flows SET next_poll_at_ms = 0 WHERE status = 'pending'" });

  it("asks the provider once in an interval, and makes one credential", async () => {
    const begun = await first().begin("google", by(ANN));
    expect(begun).toMatchObject({ ttlMs: 600_000, intervalMs: 5_000 });
    const poll = async (flows: DeviceFlows) => await flows.poll("google", begun.deviceCode, by(ANN));
    const all = async () =>
      await Promise.all(nodes.flatMap((flows) => Array.from({ length: POLLS }, () => poll(flows))));
    expect((await poll(last())).status).toBe("slow_down");
    expect(provider.tokenRequests()).toBe(0);
    await later();
    const waiting = (await all()).map(({ status }) => status);
    expect(waiting.filter((status) => status === "pending")).toHaveLength(1);
    expect(provider.tokenRequests()).toBe(1);
    await decideOnDevice(provider.url, begun.userCode, "yes");
    await later();
    const done = (await all()).filter(({ status }) => status === "done");
    expect(done.length).toBeGreaterThanOrEqual(1);
    expect(provider.tokenRequests()).toBe(2);
    const [credential, ...more] = await credentials.list(ADMIN);
    expect(more).toEqual([]);
    expect(await poll(last())).toEqual({ status: "done", credentialId: credential?.id });
    const bob: Caller = { ...ANN, subject: "bob" };
    await expect(last().poll("google", begun.deviceCode, by(bob))).rejects.toMatchObject({ code: "not_found" });
  });

  it("ends once when the owner says no", async () => {
    const begun = await first().begin("google", by(ANN));
    await decideOnDevice(provider.url, begun.userCode, "no");
    await later();
    await Promise.all(nodes.map(async (flows) => await flows.poll("google", begun.deviceCode, by(ANN))));
    expect(await last().poll("google", begun.deviceCode, by(ANN))).toEqual({ status: "denied" });
    const [entry, ...others] = (await new AuditLog(node(0).records, () => "").list({ limit: 10 })).filter(
      ({ outcome }) => outcome === "failed",
    );
    expect([entry?.action, others]).toEqual(["oauth.finish", []]);
  });
});
