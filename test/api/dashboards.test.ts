import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { DASHBOARD_LIMITS } from "../../src/knowledge/dashboards/limits.ts";
import { CalledServices, type Json } from "./services.test-kit.ts";

type Who = "ann" | "bob" | "root" | "reader" | "ofShop" | "readerOfShop" | "ofLab";

const BASE = "/v1/dashboards";
const MISSING = "01890a5d-ac96-774b-bcce-b302099a8057";
const DOCUMENT = readFileSync(new URL("../../docs/dashboards.md", import.meta.url), "utf8");

let services: CalledServices<Who>;
beforeAll(async () => {
  services = await CalledServices.start<Who>([
    ["ann", "write"],
    ["bob", "write"],
    ["root", "admin"],
    ["reader", "read"],
  ]);
  for (const database of ["shop", "lab"])
    await services.json("root", "POST", `/v1/admin/databases/${database}/tables/t`);
  await services.limit("ofShop", "write", ["shop"], "root");
  await services.limit("readerOfShop", "read", ["shop"], "root");
  await services.limit("ofLab", "write", ["lab"], "root");
});
afterAll(() => services.close());

const query = (database: string) => ({ language: "sql", text: "SELECT 1 AS one", database });
const panel = (...databases: string[]) => ({
  type: "table",
  grid: { x: 0, y: 0, w: 24, h: 8 },
  queries: databases.map(query),
});

async function made(who: Who, body: Json): Promise<Json & { id: string }> {
  const answer = await services.json(who, "POST", BASE, body);
  expect([answer.httpStatus, answer["error"]]).toEqual([201, undefined]);
  return { ...answer, id: String(answer["id"]) };
}

/** Status and error of what is refused, without what differs from request to request. */
async function refusal(who: Who, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const { httpStatus, error } = await services.json(who, method, path, body, headers);
  const { request_id: _id, ...rest } = error as Json;
  return { httpStatus, ...rest };
}

const names = async (who: Who, filter = "") =>
  ((await services.json(who, "GET", `${BASE}?limit=100${filter}`))["dashboards"] as Json[]).map(({ name }) => name);

describe("a dashboard over HTTP", () => {
  test("is made, read, changed with its tag, and deleted", async () => {
    const sent = {
      name: "Life",
      description: "All of it",
      panels: [{ ...panel("shop"), id: "a", options: { x: [1] } }],
    };
    const post = await services.send("ann", "POST", BASE, JSON.stringify(sent), { "Content-Type": "application/json" });
    expect([post.status, post.headers.get("etag")]).toEqual([201, '"1"']);
    const created = (await post.json()) as Json;
    expect(created).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      ...sent,
      panels: [{ ...sent.panels[0], title: "" }],
      settings: { variables: [], time: null, refresh_secs: null },
      version: 1,
      databases: ["shop"],
      created_at: expect.stringMatching(/Z$/),
      created_by: expect.stringMatching(/^token:/),
      updated_at: created["created_at"],
      updated_by: created["created_by"],
    });
    const path = `${BASE}/${String(created["id"])}`;
    const got = await services.send("reader", "GET", path);
    expect([got.headers.get("etag"), await got.json()]).toEqual(['"1"', created]);
    for (const tag of ['"1"', 'W/"1"']) {
      const known = await services.send("reader", "GET", path, undefined, { "If-None-Match": tag });
      expect([tag, known.status, await known.text()]).toEqual([tag, 304, ""]);
    }

    const changed = await services.json("bob", "PATCH", path, { description: null, panels: [] }, { "If-Match": '"1"' });
    expect(changed).toMatchObject({ httpStatus: 200, version: 2, name: "Life", description: null, panels: [] });
    expect(changed).toMatchObject({ databases: [], created_by: created["created_by"] });
    expect(changed["updated_by"]).not.toBe(created["updated_by"]);
    const stale = await services.send("ann", "PATCH", path, '{"name":"x"}', {
      "If-Match": '"1"',
      "Content-Type": "application/json",
    });
    expect([stale.status, stale.headers.get("etag")]).toEqual([412, '"2"']);
    expect(await stale.json()).toMatchObject({ error: { code: "precondition_failed" } });
    expect(await refusal("ann", "PATCH", path, { name: "x" }, { "If-Match": "2" })).toMatchObject({
      httpStatus: 400,
      code: "invalid_header",
    });
    expect(await refusal("ann", "DELETE", path, undefined, { "If-Match": '"1"' })).toMatchObject({ httpStatus: 412 });
    expect(await services.json("ann", "DELETE", path, undefined, { "If-Match": '"2"' })).toEqual({
      deleted: true,
      httpStatus: 200,
    });
    expect(await refusal("ann", "GET", path)).toMatchObject({ httpStatus: 404, code: "not_found" });
    const audit = await services.json("root", "GET", "/v1/admin/audit?action=dashboard.delete");
    expect(audit["entries"]).toMatchObject([{ target: created["id"], outcome: "ok", details: { name: "Life" } }]);
  });

  test("has versions that can be read and restored", async () => {
    const { id } = await made("ann", { name: "v1", panels: [panel("shop")] });
    await services.json("bob", "PATCH", `${BASE}/${id}`, { name: "v2", panels: [panel("lab")] });
    const { versions } = await services.json("reader", "GET", `${BASE}/${id}/versions`);
    expect(versions).toMatchObject([
      {
        version: 2,
        saved_at: expect.stringMatching(/Z$/),
        saved_by: expect.stringMatching(/^token:/),
        databases: ["lab"],
      },
      { version: 1, databases: ["shop"] },
    ]);
    const first = await services.json("reader", "GET", `${BASE}/${id}/versions/1`);
    expect(first).toMatchObject({ version: 1, name: "v1", panels: [panel("shop")] });
    const restored = await services.json("ann", "POST", `${BASE}/${id}/versions/1/restore`, undefined, {
      "If-Match": '"2"',
    });
    expect(restored).toMatchObject({ httpStatus: 200, version: 3, name: "v1", panels: first["panels"] });
    for (const version of ["0", "x", "1.5", "99999999999999999"]) {
      expect(await refusal("ann", "GET", `${BASE}/${id}/versions/${version}`)).toMatchObject({
        httpStatus: 400,
        code: "invalid_parameter",
      });
    }
    expect(await refusal("ann", "POST", `${BASE}/${id}/versions/99/restore`)).toMatchObject({ httpStatus: 404 });
  });

  test("is changed by exactly one of many who send the same tag", async () => {
    const { id } = await made("ann", { name: "race", panels: [panel("shop")] });
    const race = Array.from({ length: 10 }, (_, i) =>
      services.json(
        i % 2 === 0 ? "ann" : "bob",
        "PATCH",
        `${BASE}/${id}`,
        { name: `race ${i}` },
        { "If-Match": '"1"' },
      ),
    );
    const statuses = (await Promise.all(race)).map(({ httpStatus }) => httpStatus);
    expect(statuses.toSorted((x, y) => x - y)).toEqual([200, ...Array.from({ length: 9 }, () => 412)]);
    expect(await services.json("ann", "GET", `${BASE}/${id}`)).toMatchObject({ version: 2 });
  });

  test("is listed by pages", async () => {
    // Of no version that UUIDs have: as somebody may have made one up.
    const odd = ["00000000-0000-0000-0000-000000000002", "00000000-0000-0000-0000-000000000001"];
    for (const id of odd) await made("ann", { id, name: "paged", description: id.slice(-1) });
    for (let i = 3; i < 6; i++) await made("ann", { name: "paged", description: String(i) });
    const seen: unknown[] = [];
    let next: string | undefined = `${BASE}?name=paged&limit=1`;
    while (next !== undefined) {
      const page: Response = await services.send("reader", "GET", next);
      const { dashboards } = (await page.json()) as { dashboards: Json[] };
      seen.push(...dashboards.map(({ description }) => description));
      expect(dashboards.every((one) => !("panels" in one) && one["panel_count"] === 0)).toBe(true);
      next = /^<(.+)>; rel="next"$/.exec(page.headers.get("link") ?? "")?.[1];
    }
    expect(seen).toEqual(["5", "4", "3", "2", "1"]);
    for (const filter of ["limit=101", "limit=0", "before=x", "name="]) {
      expect(await refusal("reader", "GET", `${BASE}?${filter}`)).toMatchObject({ code: "invalid_parameter" });
    }
  });
});

describe("the databases of a dashboard", () => {
  const routes = (id: string) =>
    [
      ["GET", `/${id}`],
      ["PATCH", `/${id}`, { name: "taken" }],
      ["DELETE", `/${id}`],
      ["GET", `/${id}/versions`],
      ["GET", `/${id}/versions/1`],
      ["POST", `/${id}/versions/1/restore`],
    ] as const;

  test("hide it from those who lack one, word for word as if it were not there", async () => {
    const { id } = await made("ann", { name: "both", panels: [panel("shop"), panel("LAB")] });
    for (const [i, [method, rest, body]] of routes(id).entries()) {
      const missing = routes(MISSING)[i]?.[1] ?? "";
      for (const who of ["ofShop", "ofLab"] as const) {
        const told = await refusal(who, method, BASE + rest, body);
        const nothing = JSON.stringify(await refusal(who, method, BASE + missing, body));
        expect([method, rest, JSON.stringify(told)]).toEqual([method, rest, nothing.replaceAll(MISSING, id)]);
        expect(told.httpStatus).toBe(404);
      }
    }
    expect(await names("ofShop")).not.toContain("both");
    expect(await names("ofShop", "&name=both")).toEqual([]);
    expect(await names("reader", "&name=both")).toEqual(["both"]);
    expect(await services.json("ann", "GET", `${BASE}/${id}`)).toMatchObject({ version: 1, name: "both" });
  });

  test("are for all who may use them, to read or to write by their role", async () => {
    const { id } = await made("ofShop", { name: "of the shop", panels: [panel("shop")] });
    expect(await services.json("readerOfShop", "GET", `${BASE}/${id}`)).toMatchObject({ httpStatus: 200 });
    expect(await refusal("readerOfShop", "PATCH", `${BASE}/${id}`, { name: "x" })).toMatchObject({ httpStatus: 403 });
    expect(await services.json("ann", "PATCH", `${BASE}/${id}`, { name: "of the Shop" })).toMatchObject({ version: 2 });
    expect(await refusal("ofLab", "GET", `${BASE}/${id}`)).toMatchObject({ httpStatus: 404 });
  });

  test("are refused as a query of them is, whether there is such a database or not", async () => {
    const { id } = await made("ofShop", { name: "of the shop", panels: [panel("shop")] });
    for (const database of ["lab", "nowhere"]) {
      const asked = await services.send("ofShop", "POST", "/v1/query", "SELECT 1", { "X-Database": database });
      const { request_id: _id, ...error } = ((await asked.json()) as { error: Json }).error;
      const expected = { httpStatus: asked.status, ...error };
      expect(expected).toMatchObject({ httpStatus: 404, code: "database_not_found" });
      const body = { name: "x", panels: [panel("shop", database)] };
      expect(await refusal("ofShop", "POST", BASE, body)).toEqual(expected);
      expect(await refusal("ofShop", "PATCH", `${BASE}/${id}`, { panels: body.panels })).toEqual(expected);
      const variables = [{ name: "v", type: "query", query: query(database) }];
      expect(await refusal("ofShop", "PATCH", `${BASE}/${id}`, { settings: { variables } })).toEqual(expected);
    }
  });

  test("of earlier versions hide those alone", async () => {
    const { id } = await made("ann", { name: "secret", panels: [panel("lab")] });
    await services.json("ann", "PATCH", `${BASE}/${id}`, { name: "open", panels: [panel("shop")] });
    expect(await services.json("ofShop", "GET", `${BASE}/${id}/versions`)).toMatchObject({
      versions: [{ version: 2 }],
    });
    const hidden = await refusal("ofShop", "GET", `${BASE}/${id}/versions/1`);
    const missing = JSON.stringify(await refusal("ofShop", "GET", `${BASE}/${id}/versions/7`));
    expect(JSON.stringify(hidden)).toBe(missing.replace("version 7", "version 1"));
    expect(await refusal("ofShop", "POST", `${BASE}/${id}/versions/1/restore`)).toMatchObject({ httpStatus: 404 });
  });
});

describe("what comes from outside", () => {
  test.each([
    ["no JSON", "{", 400, "bad_request_body"],
    ["no object", "[]", 400, "bad_request_body"],
    ["nothing", "", 400, "bad_request_body"],
    ["a name with NUL", JSON.stringify({ name: "a\0" }), 400, "bad_request_body"],
    [
      "a key of prototypes",
      '{"name":"a","panels":[{"type":"x","options":{"__proto__":{"a":1}}}]}',
      400,
      "bad_request_body",
    ],
    ["an unknown field", '{"name":"a","version":7}', 400, "bad_request_body"],
    ["invalid UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), 400, "bad_request_body"],
    ["a body past its limit", `{"name":"${"x".repeat(DASHBOARD_LIMITS.bodyBytes)}"}`, 413, "body_too_large"],
    [
      "a document past its limit",
      JSON.stringify({
        name: "large",
        panels: [{ ...panel(), options: { text: "é".repeat(DASHBOARD_LIMITS.documentBytes / 2) } }],
      }),
      413,
      "body_too_large",
    ],
    [
      "deep options",
      `{"name":"a","panels":[{"options":${'{"a":'.repeat(9_000)}1${"}".repeat(9_000)}}]}`,
      400,
      "bad_request_body",
    ],
  ])("%s is refused", async (_, body, status, code) => {
    const answer = await fetch(services.url + BASE, {
      method: "POST",
      headers: { Authorization: `Bearer ${services.tokens.get("ann")}`, "Content-Type": "application/json" },
      body,
    });
    expect([answer.status, ((await answer.json()) as { error: Json }).error["code"]]).toEqual([status, code]);
  });

  test("an id that is no UUID is a mistake, one in capitals is the same id, and a taken one is a conflict", async () => {
    const id = "0AAAAAAA-0000-4000-8000-00000000000A";
    expect(await made("ann", { id, name: "mine" })).toMatchObject({ id: id.toLowerCase() });
    expect(await services.json("ann", "GET", `${BASE}/${id}`)).toMatchObject({ name: "mine" });
    expect(await refusal("bob", "POST", BASE, { id, name: "theirs" })).toMatchObject({
      httpStatus: 409,
      code: "conflict",
    });
    for (const bad of ["1", "x'--", "%00", "0aaaaaaa-0000-4000-8000-00000000000a%0a"]) {
      expect(await refusal("ann", "GET", `${BASE}/${bad}`)).toMatchObject({ httpStatus: 400 });
    }
  });

  test("the text of a name is no part of a statement", async () => {
    const name = `'); DROP TABLE dashboards; -- ? $1 "`;
    const { id } = await made("ann", { name, panels: [{ ...panel("shop"), title: name, options: { [name]: "?" } }] });
    expect(await names("ann", `&name=${encodeURIComponent(name)}`)).toEqual([name]);
    expect(await services.json("ann", "GET", `${BASE}/${id}`)).toMatchObject({ panels: [{ title: name }] });
  });
});

describe("the command line", () => {
  const engine = async (who: Who, ...argv: string[]) =>
    await runHere([...argv, "--server", services.url], { env: { ENGINE_TOKEN: services.tokens.get(who) ?? "" } });

  const done = async (who: Who, ...argv: string[]) => {
    const { code, stdout, stderr } = await engine(who, ...argv);
    expect([stderr, code]).toEqual(["", 0]);
    return stdout;
  };

  test("does what the document says", async () => {
    const [file = ""] = [...DOCUMENT.matchAll(/```json\n([\s\S]+?)```/g)].map(([, text]) => text);
    const [steps = ""] = [...DOCUMENT.matchAll(/```bash\n([\s\S]+?)```/g)].map(([, text]) => text);
    const path = join(services.home, "orders.json");
    writeFileSync(path, file);
    const said: string[] = [];
    for (const line of steps.trim().split("\n")) {
      const [program, ...argv] = line.split(" ");
      expect(program).toBe("engine");
      said.push(await done("ann", ...argv.map((word) => (word === "orders.json" ? path : word))));
    }
    const id = /\(([0-9a-f-]{36})\)/.exec(said[0] ?? "")?.[1] ?? "";
    expect(said).toEqual([
      `dashboard Orders (${id}) created: version 1, 2 panels\n`,
      expect.stringMatching(new RegExp(`^ID +NAME +PANELS[^]+${id} +Orders +2 +1 +shop `)),
      `dashboard Orders written to ${path}\n`,
      `dashboard Orders (${id}) unchanged: version 1, 2 panels\n`,
      "dashboard Orders deleted\n",
    ]);
    const sent = JSON.parse(file) as Json;
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ id, ...sent });
  });

  test("imports what it exported to the same bytes, here and where there is none", async () => {
    const panels = [
      { ...panel("shop"), type: "a plug-in", options: { z: 1, a: [null, 0.1] } },
      { ...panel("lab"), id: "two" },
    ];
    const { id } = await made("ann", { name: "fixed", panels, settings: { refresh_secs: 60 } });
    const first = await done("ann", "dashboards", "export", id);
    const path = join(services.home, "fixed.json");
    writeFileSync(path, first);
    expect(await done("ann", "dashboards", "import", path)).toContain("unchanged: version 1");
    await services.json("ann", "DELETE", `${BASE}/${id}`);
    expect(await done("ann", "dashboards", "import", path)).toContain(`(${id}) created: version 1`);
    expect(await done("ann", "dashboards", "export", "fixed")).toBe(first);
    await services.json("ann", "PATCH", `${BASE}/${id}`, { name: "changed", description: "more" });
    expect(await done("ann", "dashboards", "import", path)).toContain("replaced: version 3");
    expect(await done("ann", "dashboards", "export", id)).toBe(first);
    const copy = JSON.parse(await done("ann", "dashboards", "import", path, "--new", "--json")) as Json;
    expect(copy).toMatchObject({ name: "fixed", version: 1, outcome: "created" });
    expect(copy["id"]).not.toBe(id);
    const other = "0bbbbbbb-0000-4000-8000-00000000000b";
    expect(await done("ann", "dashboards", "import", path, "--id", other)).toContain(`(${other}) created`);
    expect(await done("ann", "dashboards", "export", other)).toBe(first.replace(id, other));
    const answer = await services.json("ann", "GET", `${BASE}/${id}`);
    writeFileSync(path, JSON.stringify({ ...answer, httpStatus: undefined }));
    expect(await done("ann", "dashboards", "import", path)).toContain("unchanged");
  });

  test("carries the largest document", async () => {
    const room = DASHBOARD_LIMITS.documentBytes - 400;
    await made("ann", { name: "largest", panels: [{ ...panel(), options: { text: "\n".repeat(room / 2) } }] });
    const text = await done("ann", "dashboards", "export", "largest");
    const outcome = await runHere(["dashboards", "import", "-", "--server", services.url], {
      env: { ENGINE_TOKEN: services.tokens.get("ann") ?? "" },
      input: text,
    });
    expect(outcome).toMatchObject({ code: 0, stdout: expect.stringContaining("unchanged") });
  });

  test("lists in JSON, and says when there is nothing", async () => {
    const listed = JSON.parse(await done("ofShop", "dashboards", "list", "--json")) as Json[];
    expect(listed.map(({ name }) => name)).toEqual(await names("ofShop"));
    expect(await done("ann", "dashboards", "list", "--name", "of nobody")).toBe("there are no dashboards\n");
  });

  test("names the mistake, and the ids behind a name that several have", async () => {
    const [a, b] = [await made("ann", { name: "twins" }), await made("ann", { name: "twins" })];
    const path = join(services.home, "bad.json");
    const failed = async (who: Who, ...argv: string[]) => {
      const { code, stderr } = await engine(who, "dashboards", ...argv);
      return [code, stderr];
    };
    expect(await failed("ann", "delete", "twins")).toEqual([
      1,
      `error: 2 dashboards are called twins; name one by its id: ${b.id}, ${a.id}\n`,
    ]);
    expect(await failed("ann", "export", "nobody's")).toEqual([1, "error: there is no dashboard nobody's\n"]);
    expect(await failed("ann", "export", MISSING)).toEqual([1, `error: there is no dashboard ${MISSING}\n`]);
    writeFileSync(path, "[]");
    expect(await failed("ann", "import", path)).toEqual([
      2,
      expect.stringContaining(`${path} is not a dashboard file: expected a JSON object`),
    ]);
    writeFileSync(path, '{"id":"7","name":"x"}');
    expect(await failed("ann", "import", path)).toEqual([
      2,
      expect.stringContaining("7 is not a dashboard id: expected a UUID"),
    ]);
    expect(await failed("ann", "import", path, "--new", "--id", MISSING)).toEqual([
      2,
      expect.stringContaining("--new"),
    ]);
    writeFileSync(path, '{"name":"x","panles":[]}');
    expect(await failed("ann", "import", path)).toEqual([1, expect.stringContaining('"panles"')]);
    expect(await failed("ann", "import", join(path, "none"))).toEqual([1, expect.stringContaining("cannot be read")]);
    expect(await failed("ann", "export", a.id, "--output", join(path, "x"))).toEqual([
      1,
      expect.stringContaining("cannot be written"),
    ]);
    writeFileSync(path, JSON.stringify({ name: "x", panels: [panel("lab")] }));
    expect(await failed("ofShop", "import", path)).toEqual([1, expect.stringContaining('there is no database "lab"')]);
  });
});
