import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AuditLog } from "../../auth/audit.ts";
import type { Caller } from "../../auth/caller.ts";
import type { OpenedCatalog } from "../../catalog/contract.test-kit.ts";
import { systemClock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { systemRandom } from "../../core/random.ts";
import { Dashboards } from "./dashboards.ts";
import { newDashboard, type NewDashboard } from "./document.ts";
import { DASHBOARD_LIMITS } from "./limits.ts";

const callerOf = (subject: string, databases?: readonly string[]): Caller => ({
  subject,
  kind: "session",
  role: "write",
  databases,
});
const ANN = callerOf("ann");
const OF_A = callerOf("of-a", ["a"]);
const OF_NOTHING = callerOf("of-nothing", []);
const MISSING = "01890a5d-ac96-774b-bcce-b302099a8057";

const byAnn = { caller: ANN, ifMatch: undefined };
const panelOf = (...databases: string[]) => ({
  type: "table",
  grid: { x: 0, y: 0, w: 12, h: 6 },
  queries: databases.map((database) => ({ language: "sql" as const, text: "SELECT 1", database })),
});
const content = (name: string, ...databases: string[]): NewDashboard =>
  newDashboard.parse({ name, panels: [panelOf(...databases)] });
const panelsOf = (...databases: string[]) => ({ panels: content("x", ...databases).panels });

/** What dashboards must do on every driver of the catalog. */
export function dashboardsContract(driver: string, open: () => Promise<OpenedCatalog>): void {
  describe(`dashboards on ${driver}`, () => {
    let opened: OpenedCatalog;
    let dashboards: Dashboards;
    let audit: AuditLog;
    beforeEach(async () => {
      opened = await open();
      const newId = uuidV7Source(systemClock, systemRandom);
      const { catalog } = opened;
      audit = new AuditLog(catalog.records, newId);
      dashboards = new Dashboards({ catalog, records: catalog.records, newId, audit });
    });
    afterEach(() => opened.close());

    const rowsOf = async (table: string) => {
      const [row] = await opened.catalog.records.rows(`SELECT count(*) AS n FROM ${table}`);
      return Number(row?.["n"]);
    };
    const codeOf = async (promise: Promise<unknown>) =>
      await promise.then(
        () => "done",
        (error: unknown) => (error as { code: string }).code,
      );
    const messageOf = async (promise: Promise<unknown>) =>
      await promise.then(
        () => "done",
        (error: unknown) => (error as Error).message,
      );

    it("keeps what it is given, and says who made it and who changed it last", async () => {
      const made = await dashboards.create(content("Orders", "Shop", "shop", "a"), ANN);
      expect(made).toMatchObject({ name: "Orders", version: 1, panelCount: 1, databases: ["a", "shop"] });
      expect(made.createdAtMs).toBe(opened.clock.nowMs());
      expect(await dashboards.get(made.id, ANN)).toEqual(made);
      const changed = await dashboards.change(made.id, { name: "Sales" }, { ...byAnn, caller: callerOf("bob") });
      expect(changed).toMatchObject({ version: 2, createdBy: "ann", updatedBy: "bob", name: "Sales" });
      expect(changed.document).toEqual({ ...made.document, name: "Sales" });
      expect(await dashboards.get(made.id, ANN)).toEqual(changed);
      const { document: _document, ...head } = changed;
      expect(await dashboards.list({ limit: 10 }, ANN)).toEqual([head]);
    });

    it("takes an id that is free, and refuses one that is not, leaving what is there", async () => {
      const first = await dashboards.create({ ...content("one", "a"), id: MISSING }, ANN);
      expect(first.id).toBe(MISSING);
      expect(await codeOf(dashboards.create({ ...content("two", "b"), id: MISSING }, ANN))).toBe("conflict");
      expect(await dashboards.get(MISSING, OF_A)).toEqual(first);
      expect(await dashboards.versions(MISSING, ANN)).toHaveLength(1);
    });

    it("makes no version of a change that changes nothing", async () => {
      const made = await dashboards.create(content("Orders", "a"), ANN);
      const { name, panels } = made.document;
      const same = await dashboards.change(made.id, { name, panels: [...panels] }, { ...byAnn, ifMatch: '"1"' });
      expect(same).toEqual(made);
      expect(await dashboards.restore(made.id, 1, byAnn)).toEqual(made);
      expect(await rowsOf("dashboard_versions")).toBe(1);
    });

    it("lists by pages those whose databases a caller may use, and no others", async () => {
      const [none, a, , ab] = [
        await dashboards.create(content("none"), ANN),
        await dashboards.create(content("a", "A"), ANN),
        await dashboards.create(content("b", "b"), ANN),
        await dashboards.create(content("ab", "a", "b"), ANN),
      ];
      const names = async (caller: Caller) => (await dashboards.list({ limit: 10 }, caller)).map(({ name }) => name);
      expect(await names(ANN)).toEqual(["ab", "b", "a", "none"]);
      expect(await names(OF_A)).toEqual(["a", "none"]);
      expect(await names(callerOf("of-both", ["b", "a"]))).toEqual(["ab", "b", "a", "none"]);
      expect(await names(OF_NOTHING)).toEqual(["none"]);
      expect(await dashboards.list({ limit: 1, before: a.id }, OF_A)).toMatchObject([{ id: none.id }]);
      expect(await dashboards.list({ limit: 9, name: "ab" }, OF_A)).toEqual([]);
      expect(await dashboards.list({ limit: 9, name: "ab" }, ANN)).toMatchObject([{ id: ab.id }]);
    });

    it("is not there for a caller who may not use a database of it, whatever is asked", async () => {
      const { id } = await dashboards.create(content("ab", "a", "b"), ANN);
      const ofA = { caller: OF_A, ifMatch: undefined };
      const origin = { caller: OF_A, address: "", requestId: "r" };
      const all = (of: string) => [
        dashboards.get(of, OF_A),
        dashboards.change(of, { name: "x" }, ofA),
        dashboards.restore(of, 1, ofA),
        dashboards.versions(of, OF_A),
        dashboards.version(of, 1, OF_A),
        dashboards.remove(of, { ifMatch: undefined, origin }),
      ];
      const told = await Promise.all(all(id).map(messageOf));
      expect(told).toEqual((await Promise.all(all(MISSING).map(messageOf))).map((text) => text.replace(MISSING, id)));
      expect(new Set(await Promise.all(all(id).map(codeOf)))).toEqual(new Set(["not_found"]));
      expect(await dashboards.versions(id, ANN)).toHaveLength(1);
    });

    it("takes no query of a database that the caller may not use, in panels and variables, existing or not", async () => {
      await opened.catalog.createDatabase("b");
      const { id } = await dashboards.create(content("a", "a"), OF_A);
      const query = { language: "sql", text: "SELECT 1", database: "b" };
      const { settings } = newDashboard.parse({
        name: "x",
        settings: { variables: [{ name: "v", type: "query", query }] },
      });
      const ofA = { caller: OF_A, ifMatch: undefined };
      expect(await codeOf(dashboards.create(content("b", "b"), OF_A))).toBe("database_not_found");
      expect(await codeOf(dashboards.change(id, panelsOf("a", "b"), ofA))).toBe("database_not_found");
      expect(await codeOf(dashboards.change(id, { settings }, ofA))).toBe("database_not_found");
      const [real, made] = [panelsOf("b"), panelsOf("nope")];
      expect((await messageOf(dashboards.change(id, real, ofA))).replace('"b"', "?")).toBe(
        (await messageOf(dashboards.change(id, made, ofA))).replace('"nope"', "?"),
      );
      expect(await dashboards.get(id, OF_A)).toMatchObject({ version: 1, databases: ["a"] });
      expect(await dashboards.change(id, { settings }, byAnn)).toMatchObject({ databases: ["a", "b"] });
      expect(await codeOf(dashboards.get(id, OF_A))).toBe("not_found");
    });

    it("hides versions that name a database of others, and restores none of them for such a caller", async () => {
      const { id } = await dashboards.create(content("v1", "a", "b"), ANN);
      await dashboards.change(id, { ...panelsOf("a"), name: "v2" }, byAnn);
      const ofA = { caller: OF_A, ifMatch: undefined };
      expect((await dashboards.versions(id, OF_A)).map(({ version }) => version)).toEqual([2]);
      expect((await dashboards.versions(id, ANN)).map(({ version }) => version)).toEqual([2, 1]);
      expect(await messageOf(dashboards.version(id, 1, OF_A))).toBe(
        (await messageOf(dashboards.version(id, 99, OF_A))).replace("version 99", "version 1"),
      );
      expect(await codeOf(dashboards.restore(id, 1, ofA))).toBe("not_found");
      expect(await dashboards.restore(id, 1, byAnn)).toMatchObject({ version: 3, name: "v1", databases: ["a", "b"] });
      expect(await codeOf(dashboards.get(id, OF_A))).toBe("not_found");
      expect((await dashboards.version(id, 2, ANN)).document.name).toBe("v2");
    });

    it(`keeps the last ${DASHBOARD_LIMITS.versions} versions`, async () => {
      const { id } = await dashboards.create(content("v1", "a"), ANN);
      const last = DASHBOARD_LIMITS.versions + 5;
      for (let i = 2; i <= last; i++) {
        opened.clock.advance(1_000);
        await dashboards.change(id, { name: `v${i}` }, byAnn);
      }
      const versions = await dashboards.versions(id, ANN);
      const expected = Array.from({ length: DASHBOARD_LIMITS.versions }, (_, i) => last - i);
      expect(versions.map(({ version }) => version)).toEqual(expected);
      expect(versions[0]).toMatchObject({ savedAtMs: opened.clock.nowMs(), savedBy: "ann" });
      expect(await rowsOf("dashboard_versions")).toBe(DASHBOARD_LIMITS.versions);
      expect(await codeOf(dashboards.restore(id, 5, byAnn))).toBe("not_found");
      expect(await dashboards.restore(id, 6, byAnn)).toMatchObject({ version: last + 1, name: "v6" });
    });

    it("lets one of several changes of the same version through, and tells the others so", async () => {
      const { id } = await dashboards.create(content("v1", "a"), ANN);
      const race = Array.from({ length: 8 }, (_, i) =>
        codeOf(dashboards.change(id, { name: `by ${i}` }, { ...byAnn, ifMatch: '"1"' })),
      );
      const outcomes = (await Promise.all(race)).toSorted();
      expect(outcomes).toEqual(["done", ...Array.from({ length: 7 }, () => "precondition_failed")]);
      expect(await dashboards.get(id, ANN)).toMatchObject({ version: 2 });
      expect(await codeOf(dashboards.change(id, { name: "x" }, { ...byAnn, ifMatch: '"9", "2"' }))).toBe("done");
      expect(await codeOf(dashboards.change(id, { name: "y" }, { ...byAnn, ifMatch: "*" }))).toBe("done");
      expect(await codeOf(dashboards.restore(id, 1, { ...byAnn, ifMatch: '"3"' }))).toBe("precondition_failed");
    });

    it("loses none of several changes that ask for no version", async () => {
      const { id } = await dashboards.create(content("v1", "a"), ANN);
      const race = Array.from({ length: 6 }, (_, i) => dashboards.change(id, { name: `by ${i}` }, byAnn));
      const versions = (await Promise.all(race)).map(({ version }) => version);
      expect(versions.toSorted((x, y) => x - y)).toEqual([2, 3, 4, 5, 6, 7]);
      const names = await Promise.all(
        versions.map(async (one) => (await dashboards.version(id, one, ANN)).document.name),
      );
      expect(names.toSorted()).toEqual(["by 0", "by 1", "by 2", "by 3", "by 4", "by 5"]);
    });

    it("deletes everything of a dashboard, with an entry of the audit log", async () => {
      const { id } = await dashboards.create(content("gone", "a"), ANN);
      const kept = await dashboards.create(content("kept", "a"), ANN);
      await dashboards.change(id, { name: "Gone" }, byAnn);
      const origin = { caller: ANN, address: "127.0.0.1", requestId: "r" };
      expect(await codeOf(dashboards.remove(id, { ifMatch: '"1"', origin }))).toBe("precondition_failed");
      const race = [1, 2, 3].map(() => codeOf(dashboards.remove(id, { ifMatch: undefined, origin })));
      expect((await Promise.all(race)).toSorted()).toEqual(["done", "not_found", "not_found"]);
      expect(await audit.list({ limit: 10 })).toMatchObject([
        { action: "dashboard.delete", target: id, actor: "ann", outcome: "ok", details: { name: "Gone", version: 2 } },
      ]);
      expect(await dashboards.list({ limit: 10 }, ANN)).toMatchObject([{ id: kept.id }]);
      expect([await rowsOf("dashboard_versions"), await rowsOf("dashboard_databases")]).toEqual([1, 1]);
    });

    it("takes the largest document, and none that grows past it by parts", async () => {
      const text = "x".repeat(60_000);
      const many = (count: number) =>
        newDashboard.parse({
          name: "large",
          panels: Array.from({ length: count }, () => ({
            ...panelOf(),
            queries: Array.from({ length: 4 }, () => ({ language: "kql", text })),
          })),
        });
      const { id } = await dashboards.create(many(4), ANN);
      const values = Array.from({ length: 600 }, () => "y".repeat(1_000));
      const { settings } = newDashboard.parse({
        name: "x",
        settings: { variables: [{ name: "v", type: "list", values }] },
      });
      expect(await codeOf(dashboards.change(id, { settings }, byAnn))).toBe("body_too_large");
      expect(await codeOf(dashboards.change(id, { settings, panels: [] }, byAnn))).toBe("done");
      const room = { name: "x", panels: [{ ...panelOf(), id: "p", options: { text: "" } }] };
      const free =
        DASHBOARD_LIMITS.documentBytes -
        JSON.stringify((await dashboards.create(newDashboard.parse(room), ANN)).document).length;
      const filled = (chars: number) =>
        newDashboard.parse({ ...room, panels: [{ ...panelOf(), id: "p", options: { text: "z".repeat(chars) } }] });
      const largest = await dashboards.create(filled(free), ANN);
      expect(await dashboards.get(largest.id, ANN)).toEqual(largest);
      expect(await codeOf(dashboards.create(filled(free + 1), ANN))).toBe("body_too_large");
    });
  });
}
