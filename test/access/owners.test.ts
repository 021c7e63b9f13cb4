import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import type { Route } from "../../src/server/route.ts";
import { ENGINE_ROUTES, ENGINE_ROUTES_WITHOUT } from "./owned-engine.test-kit.ts";
import { SANDBOX_ROUTES, SANDBOX_ROUTES_WITHOUT } from "./owned-sandboxes.test-kit.ts";
import { MISSING_ID, type Listing, type Naming, type OwnedRoute, type Tenant } from "./owned.test-kit.ts";
import { nameOf, ROUTES } from "./routes.test-kit.ts";
import { startTinyProvider } from "./tiny-provider.test-kit.ts";
import { jsonRequest, startWorld, type Reply, type Stranger, type TestRequest, type World } from "./world.test-kit.ts";

/**
 * Every route that names or lists a record with an owner, as two tenants and an admin. A route that is in neither table,
 * and a field that may name a record and is not in the route's row, fail.
 */
const OWNED: Readonly<Record<string, OwnedRoute>> = { ...ENGINE_ROUTES, ...SANDBOX_ROUTES };
const WITHOUT: Readonly<Record<string, string>> = { ...ENGINE_ROUTES_WITHOUT, ...SANDBOX_ROUTES_WITHOUT };

const PASSWORD = "a password of a tenant";

let world: World;
let provider: Awaited<ReturnType<typeof startTinyProvider>>;
let ann: Tenant;
let bob: Tenant;
let root: Tenant;
beforeAll(async () => {
  provider = await startTinyProvider();
  world = await startWorld(provider.environment);
  [ann, bob, root] = [
    await newTenant("ann", "write"),
    await newTenant("bob", "write"),
    await newTenant("rita", "admin"),
  ];
}, 120_000);
afterAll(async () => {
  await world.stop();
  provider.close();
});

test("every route is in one of the tables, and every row is of a route", () => {
  const rows = [...Object.keys(OWNED), ...Object.keys(WITHOUT)];
  expect(rows.toSorted()).toEqual(ROUTES.map(nameOf).toSorted());
});

test.each(ROUTES.map((route) => [nameOf(route), route] as const))(
  "%s: every field that may name a record",
  (name, route) => {
    const { names = {}, plain = {} } = OWNED[name] ?? {};
    // What the other table says of a route is of the whole of it.
    const known = name in WITHOUT ? referencesOf(route) : [...Object.keys(names), ...Object.keys(plain)];
    expect(referencesOf(route).filter((place) => !known.includes(place))).toEqual([]);
  },
);

const NAMINGS = Object.entries(OWNED).flatMap(([name, { names = {} }]) =>
  Object.entries(names).map(([place, naming]) => [`${name}: ${place}`, naming] as const),
);

describe.each(NAMINGS)("%s", (_, naming) => {
  test("takes the owner's and an admin's, and is for others as if there were none", async () => {
    const { make, missing = MISSING_ID, stranger = 404, answer, adminAnswer = answer } = naming;
    const id = await make(ann);
    const theirs = await send(naming, id, bob);
    const nobodys = await send(naming, missing, bob);
    expect(outlineOf(theirs, id)).toEqual(outlineOf(nobodys, missing));
    expect(theirs.status).toBe(stranger);
    expect(await send(naming, id, ann)).toMatchObject({ status: answer });
    expect(await send(naming, await make(ann), root)).toMatchObject({ status: adminAnswer });
  });
});

const LISTINGS = Object.entries(OWNED).flatMap(([name, { lists }]) =>
  lists === undefined ? [] : [[name, lists] as const],
);

describe.each(LISTINGS)("%s", (_, listing) => {
  test("lists what the caller owns, and to an admin everything", async () => {
    // One after the other, and the stranger first: to list may be to take.
    const shown = await listing.make(ann);
    const strangers = await list(listing, bob);
    const owners = await list(listing, ann);
    expect(owners.text).toContain(shown);
    expect(strangers.status).toBe(owners.status);
    expect(strangers.text).not.toContain(shown);
    const another = await listing.make(ann);
    const admins = await list(listing, root);
    expect(admins.text.includes(another)).toBe(listing.admin !== "nothing");
  });
});

describe("the command line", () => {
  const run = async (by: Tenant, ...argv: string[]) => {
    const token = by.authorization?.replace("Bearer ", "") ?? "";
    return await runHere([...argv, "--server", world.engine.url], { env: { ENGINE_TOKEN: token } });
  };

  test("shares a credential for use: others see that it is there, and change nothing", async () => {
    const secret = "ghp_0123456789_0123456789";
    const body = { label: "shared one", value: { kind: "pat", token: secret }, metadata: { team: "ann's" } };
    const id = String((await ann.ask("POST", "/v1/credentials", body))["id"]);
    expect(await run(ann, "credentials", "share", id)).toMatchObject({ stdout: `credential ${id} is shared\n` });
    const seen = await bob.ask("GET", `/v1/credentials/${id}`);
    const hidden = { preview: "••••", metadata: {} };
    expect(seen).toMatchObject({ label: "shared one", shared: true, owned_by: "ann", ...hidden });
    expect((await bob.ask("GET", "/v1/credentials"))["credentials"]).toContainEqual(seen);
    expect(await bob.ask("POST", "/v1/jobs", { kind: "x.untouched", credentials: [id] })).toMatchObject({
      deduped: false,
    });
    const path = `/v1/credentials/${id}`;
    for (const request of [jsonRequest("PATCH", path, { shared: false }), jsonRequest("DELETE", path)]) {
      expect([request.method, (await asked(request, bob)).status]).toEqual([request.method, 404]);
    }
    const refresh = jsonRequest("POST", "/api/v1/oauth/an-issuer/refresh", { credential_id: id });
    expect((await asked(refresh, bob)).status).toBe(404);
    expect(await run(ann, "credentials", "share", id, "--off")).toMatchObject({ code: 0 });
    expect((await asked(jsonRequest("GET", path), bob)).status).toBe(404);
  });

  test("hands all records of one owner to another one", async () => {
    const [carl, dora] = [await newTenant("carl", "write"), await newTenant("dora", "write")];
    const made = await Promise.all([
      carl.ask("POST", "/v1/credentials", { label: "c", value: { kind: "pat", token: "a token" } }),
      carl.ask("POST", "/v1/schedules", { name: "s", kind: "x.k", timing: { every_ms: 86_400_000 } }),
      carl.ask("POST", "/v1/jobs", { kind: "x.k" }),
    ]);
    const paths = [`/v1/credentials/${String(made[0]["id"])}`, `/v1/schedules/${String(made[1]["id"])}`];
    const all = [...paths, `/v1/jobs/${String(made[2]["job_id"])}`];
    const statuses = async (by: Tenant) =>
      await Promise.all(all.map(async (path) => (await asked(jsonRequest("GET", path), by)).status));
    expect([await statuses(carl), await statuses(dora)]).toEqual([
      [200, 200, 200],
      [404, 404, 404],
    ]);
    const transfer = ["transfer-ownership", "--from", "carl", "--to", "dora"];
    expect((await run(dora, ...transfer)).code).not.toBe(0);
    const { code, stdout } = await run(root, ...transfer);
    expect(code).toBe(0);
    for (const table of ["credentials", "jobs", "schedules", "workers"]) {
      expect(stdout).toMatch(new RegExp(`^${table} +1 *$`, "m"));
    }
    expect([await statuses(carl), await statuses(dora)]).toEqual([
      [404, 404, 404],
      [200, 200, 200],
    ]);
    expect((await run(root, ...transfer)).stdout).toBe("nothing belongs to carl\n");
  });
});

async function send({ request, by }: Naming, id: string, asker: Tenant): Promise<Reply> {
  return await asked(await request(id, asker), by === "worker" ? asker.worker : asker);
}

async function list({ request, by }: Listing, asker: Tenant): Promise<Reply> {
  return await asked(await request(asker), by === "worker" ? asker.worker : asker);
}

function asked(request: TestRequest, by: Stranger): Promise<Reply> {
  return world.send(request, by);
}

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

/** What two answers must have in common for nobody to tell one from the other. */
function outlineOf({ status, text, headers }: Reply, id: string): unknown {
  const same = text.replaceAll(id, "<id>").replaceAll(UUID, "<uuid>").replaceAll(TIME, "<time>");
  const names = Object.keys(headers).filter((name) => name !== "content-length");
  return { status, text: same, headers: names.toSorted() };
}

async function newTenant(username: string, role: "write" | "admin"): Promise<Tenant> {
  await world.admin("POST", "/v1/admin/users", { username, password: PASSWORD, role });
  const login = await world.send(jsonRequest("POST", "/v1/auth/login", { username, password: PASSWORD }));
  const authorization = `Bearer ${String(login.json["access_token"])}`;
  const address = "127.0.0.1";
  const ask: Tenant["ask"] = async (method, path, body) => {
    const reply = await world.send(jsonRequest(method, path, body), { name: username, authorization, address });
    if (reply.status >= 300) throw new Error(`${method} ${path} of ${username}: ${reply.status} ${reply.text}`);
    return reply.json;
  };
  const made = await ask("POST", "/v1/workers", { name: `${username}'s` });
  const worker = {
    name: `${username}'s worker`,
    id: String(made["worker_id"]),
    authorization: `Bearer ${String(made["token"])}`,
    address,
  };
  return { name: username, authorization, address, world, ask, worker };
}

/** Last parts of names of fields that name records. */
const REFERENCE =
  /^(.*_)?(id|sid|ids|key|label|labels|name|names|state|code|credential|credentials|selector|before|after|owner|host|worker|image|image_id|workspace|volume|sandbox|session|snapshot|target)$/;

/** The places of a request where a record may be named: `path id`, `body credentials`, `body spec.volumes[].name`. */
function referencesOf({ params, query, headers, json }: Route): string[] {
  const parts = { path: params, query, header: headers, body: json };
  return Object.entries(parts).flatMap(([part, schema]) => {
    if (schema === undefined) return [];
    const places = leavesOf(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema);
    return [...new Set(places)].filter((place) => REFERENCE.test(lastOf(place))).map((place) => `${part} ${place}`);
  });
}

function lastOf(place: string): string {
  return place.split(".").at(-1)?.replaceAll("[]", "") ?? "";
}

type JsonSchema = {
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
};

function leavesOf(schema: JsonSchema, at = ""): string[] {
  const { properties, items, anyOf = [], oneOf = [], allOf = [] } = schema;
  const choices = [...anyOf, ...oneOf, ...allOf];
  const inside = [
    ...Object.entries(properties ?? {}).flatMap(([name, part]) => leavesOf(part, at === "" ? name : `${at}.${name}`)),
    ...(items === undefined ? [] : leavesOf(items, `${at}[]`)),
    ...choices.flatMap((choice) => leavesOf(choice, at)),
  ];
  // An array of texts is a place of its own, whatever its items are called.
  return properties === undefined && items === undefined && choices.length === 0 ? [at] : inside;
}
