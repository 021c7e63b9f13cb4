import { afterEach, beforeEach, expect, it } from "vitest";
import { startSandboxApi, type SandboxApi } from "./sandboxes.test-kit.ts";

const BASE = "/api/v1/volumes";
const NODE = "node-1";

let api: SandboxApi;
beforeEach(async () => {
  api = await startSandboxApi({ volumes: { perOwner: 250, mbPerOwner: 4_000 } });
  await api.plane.report(NODE);
});
afterEach(() => api.close());

type Listed = Record<string, unknown> & { id: string; name: string };

const create = async (by: string, ...volumes: readonly { name: string; size_mb?: number }[]) =>
  await api.call("POST", "/api/v1/sandboxes", {
    by,
    body: {
      agent_provider: "codex",
      volumes: volumes.map(({ name, size_mb = 16 }) => ({ name, size_mb, mount_path: `/data/${name}` })),
    },
  });
/** Of sandboxes that are gone. */
const left = async (by: string, ...names: readonly string[]): Promise<void> => {
  for (let i = 0; i < names.length; i += 8) {
    const made = await create(by, ...names.slice(i, i + 8).map((name) => ({ name })));
    expect(made.status).toBe(202);
    await api.call("DELETE", `/api/v1/sandboxes/${String(made.json["id"])}`, { by });
  }
};
const list = async (by: string, query = "") => {
  const response = await fetch(`${api.url}${BASE}${query}`, { headers: { Authorization: `Bearer ${by}` } });
  const volumes = (await response.json()) as Listed[];
  return { status: response.status, volumes, link: response.headers.get("link") };
};

it("volumes show whose they are, how large, and when they were used and will expire", async () => {
  const made = await create("ann", { name: "data", size_mb: 20 });
  const [volume, ...more] = (await list("ann")).volumes;
  expect(more).toEqual([]);
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as unknown;
  expect(volume).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
    name: "data",
    owned_by: "ann",
    size_mb: 20,
    node_id: null,
    in_use: true,
    created_at: time,
    last_used_at: time,
    expires_at: null,
  });
  expect((await list("root")).volumes).toMatchObject([{ id: volume?.id, owned_by: "ann", node_id: NODE }]);
  const path = `${BASE}/${volume?.id}`;
  const refused = await api.call("DELETE", path, { by: "ann" });
  expect(refused).toMatchObject({ status: 409, code: "conflict" });
  expect(refused.message).toContain(String(made.json["id"]));
  await api.call("DELETE", `/api/v1/sandboxes/${String(made.json["id"])}`, { by: "ann" });
  const [unused] = (await list("ann")).volumes;
  expect(unused).toMatchObject({ in_use: false, expires_at: time });
  const days = (Date.parse(String(unused?.["expires_at"])) - Date.parse(String(unused?.["last_used_at"]))) / 86_400_000;
  expect(days).toBe(30);
  expect((await api.call("DELETE", path, { by: "ann" })).status).toBe(204);
  expect((await list("ann")).volumes).toEqual([]);
  expect((await api.call("DELETE", path, { by: "ann" })).status).toBe(404);
});

it("pages follow each other by Link, each volume once", async () => {
  const names = Array.from({ length: 205 }, (_, i) => `v${i}`);
  await left("ann", ...names);
  const seen: string[] = [];
  const sizes: number[] = [];
  for (let query: string | undefined = "?limit=100"; query !== undefined;) {
    const { volumes, link } = await list("ann", query);
    sizes.push(volumes.length);
    seen.push(...volumes.map(({ name }) => name));
    query = link === null ? undefined : /^<\/api\/v1\/volumes(\?[^>]+)>; rel="next"$/.exec(link)?.[1];
  }
  expect(sizes).toEqual([100, 100, 5]);
  expect(seen.toSorted()).toEqual(names.toSorted());
  expect((await list("ann")).volumes).toHaveLength(100);
  for (const query of ["?limit=0", "?limit=101", "?limit=x", "?before=x"]) {
    expect([query, (await list("ann", query)).status]).toEqual([query, 400]);
  }
});

it("a quota is refused with what is there already", async () => {
  await left("ann", "a");
  const { status, code, message } = await create("ann", { name: "b", size_mb: 3_990 });
  expect([status, code]).toEqual([429, "rate_limited"]);
  expect(message).toContain("there are 1 with 16 MiB");
  expect((await create("bob", { name: "b", size_mb: 3_990 })).status).toBe(202);
});
