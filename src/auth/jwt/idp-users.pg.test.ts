import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../../catalog/postgres/postgres.test-kit.ts";
import { systemClock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { AuditLog } from "../audit.ts";
import { IdpUsers } from "./idp-users.ts";
import type { Vouched } from "./idp-rules.ts";

const FROM = { address: "10.0.0.1", requestId: "r-1" };
const AT_MS = 1_700_000_000_000;
const ann: Vouched = { subject: "id of ann", name: "ann@x.example", role: "read", atMs: AT_MS };

describe.skipIf(lacks("PostgreSQL"))("users of an identity provider, on two nodes with one catalog", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop());

  test("are made once and changed once, however many requests bring them at a time", async () => {
    const url = await server.createDatabase();
    const catalogs = [await openTestCatalog(url), await openTestCatalog(url)];
    const newId = uuidV7Source(systemClock, systemRandom);
    const nodes = catalogs.map(({ records }) => {
      const audit = new AuditLog(records, newId);
      return { audit, users: new IdpUsers({ records, audit, newId, log: silentLog }) };
    });
    const everywhere = async (vouched: Vouched) => {
      const requests = Array.from({ length: 10 }, () => nodes.map(({ users }) => users.signIn(vouched, FROM)));
      const callers = await Promise.all(requests.flat());
      return [...new Set(callers.map(({ userId, role }) => `${userId} ${role}`))];
    };
    const [first, ...others] = await everywhere(ann);
    expect(others).toEqual([]);
    const id = first?.split(" ")[0];
    expect(await everywhere({ ...ann, role: "admin", atMs: AT_MS + 1_000 })).toEqual([`${id} admin`]);
    expect(await everywhere(ann)).toEqual([`${id} admin`]);
    expect(await everywhere({ ...ann, role: "write", atMs: AT_MS + 2_000 })).toEqual([`${id} write`]);
    const entries = (await nodes[0]?.audit.list({ limit: 10 })) ?? [];
    expect(entries.map(({ action, details }) => [action, details])).toEqual([
      ["user.role", { role: "write" }],
      ["user.role", { role: "admin" }],
      ["user.create", { role: "read" }],
    ]);
    const other = nodes[1]?.users.signIn({ ...ann, subject: "id of another" }, FROM);
    await expect(other).rejects.toMatchObject({ code: "forbidden" });
    await Promise.all(catalogs.map((catalog) => catalog.close()));
  });
});
