import { newName, type Naming, type OwnedRoute, type Tenant } from "./owned.test-kit.ts";
import { jsonRequest, type TestRequest, type World } from "./world.test-kit.ts";

/** Routes of sandboxes, nodes, sessions, workspaces and images, and what they have to do with records that have owners. */

const SANDBOXES = "/api/v1/sandboxes";
const WORKSPACES = "/api/v1/workspaces";
const IMAGES = "/api/v1/images";
const VOLUMES = "/api/v1/volumes";
const EXEC_ID = "01890a5d-ac96-774b-bcce-b302099a8058";
const CODEX = { agent_provider: "codex" };
const SPEC = { agent: { provider: "codex" } };
const HOST = "git.example.com";

async function idOf(tenant: Tenant, path: string, body: unknown, field = "id"): Promise<string> {
  return String((await tenant.ask("POST", path, body))[field]);
}

const newSandbox = (tenant: Tenant): Promise<string> => idOf(tenant, SANDBOXES, CODEX);
const newSession = async (tenant: Tenant): Promise<string> =>
  await idOf(tenant, `${SANDBOXES}/${await newSandbox(tenant)}/sessions`, {});
const newWorkspace = (tenant: Tenant, spec: object = {}): Promise<string> =>
  idOf(tenant, WORKSPACES, { name: newName(), spec: { ...SPEC, ...spec } });

const PAT = { kind: "pat", token: "a token of the test" };
const newCredential = (tenant: Tenant, label = newName()): Promise<string> =>
  idOf(tenant, "/v1/credentials", { label, value: PAT, metadata: { hosts: [HOST] } });

/** A node that builds images and has room for no sandbox. */
const BUILDER = {
  name: "builder",
  runtime: "none",
  labels: {},
  images: ["host"],
  capacity: { cpu_millis: 0, memory_mb: 0, disk_mb: 0, sandboxes: 0 },
  boot_id: "b",
};
const TEMPLATE = 'base = "host"\n';

const newBuild = async (tenant: Tenant): Promise<string> => {
  await report(tenant.world);
  return await idOf(tenant, `${IMAGES}/build`, { provider: "codex", template_source: TEMPLATE }, "build_id");
};

async function newImage(tenant: Tenant): Promise<string> {
  const { world } = tenant;
  const buildId = await newBuild(tenant);
  const claimed = await world.send(
    jsonRequest("POST", "/v1/jobs/claim", { kinds: ["image_build"], max: 64 }),
    world.worker,
  );
  for (const { id, fence, payload } of claimed.json["jobs"] as {
    id: string;
    fence: number;
    payload: { buildId: string };
  }[]) {
    const layer = { buildId: payload.buildId, fence, parts: 1, sha256: "a".repeat(64), sizeBytes: 1, unpackedBytes: 1 };
    const request = jsonRequest("POST", `/v1/jobs/${id}/complete`, { layer });
    const headers = { ...request.headers, "x-job-fence": String(fence) };
    await world.send({ ...request, headers }, world.worker);
  }
  return String((await tenant.ask("GET", `${IMAGES}/builds/${buildId}`))["image_id"]);
}

/** A volume that no sandbox names any more. */
async function newVolume(tenant: Tenant): Promise<string> {
  // One with room for a small sandbox, and none for those of other tests.
  await report(tenant.world, { cpu_millis: 100, memory_mb: 64, disk_mb: 1_000_000, sandboxes: 1_000 });
  const name = newName();
  const limits = { cpu_cores: 0.1, memory_mb: 64, disk_mb: 64 };
  const volumes = [{ name, mount_path: "/data", size_mb: 16 }];
  const id = await idOf(tenant, SANDBOXES, { ...CODEX, resource_limits: limits, volumes });
  await tenant.ask("DELETE", `${SANDBOXES}/${id}`);
  await report(tenant.world);
  const { json } = await tenant.world.send({ method: "GET", path: VOLUMES }, tenant);
  const volume = (json as unknown as { id: string; name: string }[]).find((one) => one.name === name);
  if (volume === undefined) throw new Error("no volume was made");
  return volume.id;
}

async function report(world: World, capacity = BUILDER.capacity): Promise<void> {
  await world.send(jsonRequest("POST", "/v1/sandbox-nodes/report", { ...BUILDER, capacity }), world.worker);
}

/** What is asked of one of these, by its id in the path. */
type Path = { make: Naming["make"]; base: string };
function about({ make, base }: Path): (method: string, rest: string, answer: number, body?: unknown) => Naming {
  return (method, rest, answer, body) => ({
    make,
    request: (id) => jsonRequest(method, `${base}/${id}${rest}`, body),
    answer,
  });
}
const sandbox = about({ make: newSandbox, base: SANDBOXES });
const session = about({ make: newSession, base: "/api/v1/sessions" });
const workspace = about({ make: (tenant) => newWorkspace(tenant), base: WORKSPACES });
const image = about({ make: newImage, base: IMAGES });
const volume = about({ make: newVolume, base: VOLUMES });

const create = (body: object): TestRequest => jsonRequest("POST", SANDBOXES, { ...CODEX, ...body });

/** A request that launches a workspace of the asker's. */
async function launch(asker: Tenant, spec: object): Promise<TestRequest> {
  return jsonRequest("POST", `${WORKSPACES}/${await newWorkspace(asker, spec)}/launch`);
}

const OWN_NAMES = "each owner has names of its own: contract-owners.ts of src/sandbox/scheduler";
const INSIDE = "a name inside of the sandbox";
const ORDER = "a place in the order of ids, whether there is such an id or not";
const ENDLESS = "what it answers does not end: test/sandbox-routes/owners.test.ts";
const HOLDERS = "of the node that holds the job: test/sandbox-routes/nodes.test.ts";
const IN_SANDBOX = "found in the sandbox alone";
const LAUNCHED = "looked up when it is launched";

const CREATE_NAMES = [
  "ports[].name",
  "binaries[].name",
  "pre_commands[].name",
  "skills[].name",
  "subagents[].name",
  "provisioning_scripts[].name",
];
const SPEC_NAMES = [...CREATE_NAMES, "agent.mcp_servers[].name"];
const WORKSPACE_BODY = {
  "body name": "of nothing but this workspace",
  "body labels": "of nothing but this workspace",
  ...Object.fromEntries(SPEC_NAMES.map((place) => [`body spec.${place}`, INSIDE])),
  ...Object.fromEntries(
    [
      "repositories[].credential_id",
      "credentials[].credential_id",
      "credentials[].name",
      "image",
      "volumes[].name",
    ].map((place) => [`body spec.${place}`, LAUNCHED]),
  ),
};

const PORTS = ["GET", "POST", "PUT", "PATCH", "DELETE"].flatMap((method): [string, OwnedRoute][] => [
  [`${method} ${SANDBOXES}/{id}/ports/{port}/`, ofPort(method, "/ports/80/")],
  [`${method} ${SANDBOXES}/{id}/ports/{port}/{*path}`, ofPort(method, "/ports/80/a")],
]);

function ofPort(method: string, rest: string): OwnedRoute {
  const make = async (tenant: Tenant) => await idOf(tenant, SANDBOXES, { ...CODEX, ports: [{ port: 80 }] });
  return { names: { "path id": { ...sandbox(method, rest, 409), make } } };
}

export const SANDBOX_ROUTES: Readonly<Record<string, OwnedRoute>> = {
  [`POST ${SANDBOXES}`]: {
    names: {
      "body image": { make: newImage, request: (id) => create({ image: id }), answer: 202 },
      "body git_repos[].credential_id": {
        make: newCredential,
        request: (id) => create({ git_repos: [{ url: `https://${HOST}/a/b`, credential_id: id }] }),
        answer: 202,
      },
      "body credentials[].credential_id": {
        make: newCredential,
        request: (id) => create({ credentials: [{ credential_id: id, hosts: [HOST] }] }),
        answer: 202,
      },
    },
    plain: {
      "body name": OWN_NAMES,
      "body volumes[].name": OWN_NAMES,
      "body labels": "of nothing but this sandbox, and of nodes, which have no owner",
      "body agent_config.mcp_servers[].name": INSIDE,
      ...Object.fromEntries(CREATE_NAMES.map((place) => [`body ${place}`, INSIDE])),
    },
  },
  [`GET ${SANDBOXES}`]: {
    lists: { make: newSandbox, request: () => ({ method: "GET", path: SANDBOXES }) },
    plain: {
      "query state": "one of all states",
      "query labels": "of those that are listed",
      "query before": ORDER,
    },
  },
  [`GET ${SANDBOXES}/{id}`]: { names: { "path id": sandbox("GET", "", 200) } },
  [`DELETE ${SANDBOXES}/{id}`]: { names: { "path id": sandbox("DELETE", "", 204) } },
  [`POST ${SANDBOXES}/{id}/start`]: { names: { "path id": sandbox("POST", "/start", 409) } },
  [`POST ${SANDBOXES}/{id}/stop`]: { names: { "path id": sandbox("POST", "/stop", 409) } },
  [`POST ${SANDBOXES}/{id}/pause`]: { names: { "path id": sandbox("POST", "/pause", 409) } },
  [`POST ${SANDBOXES}/{id}/resume`]: { names: { "path id": sandbox("POST", "/resume", 409) } },
  [`GET ${SANDBOXES}/{id}/stats`]: { names: { "path id": sandbox("GET", "/stats", 200) } },
  [`GET ${SANDBOXES}/{id}/logs`]: { names: { "path id": sandbox("GET", "/logs", 200) } },
  [`GET ${SANDBOXES}/{id}/stream`]: { plain: { "path id": ENDLESS, "query last_event_id": "a number" } },
  [`POST ${SANDBOXES}/{id}/exec/stream`]: {
    names: { "path id": sandbox("POST", "/exec/stream", 409, { command: "true" }) },
  },
  [`GET ${SANDBOXES}/{id}/exec/{exec_id}/stream`]: {
    names: { "path id": sandbox("GET", `/exec/${EXEC_ID}/stream`, 409) },
    plain: { "path exec_id": IN_SANDBOX },
  },
  [`DELETE ${SANDBOXES}/{id}/exec/{exec_id}`]: {
    names: { "path id": sandbox("DELETE", `/exec/${EXEC_ID}`, 409) },
    plain: { "path exec_id": IN_SANDBOX },
  },
  [`GET ${SANDBOXES}/{id}/shell`]: { plain: { "path id": ENDLESS } },
  [`POST ${SANDBOXES}/{id}/sessions`]: { names: { "path id": sandbox("POST", "/sessions", 201, {}) } },
  [`GET ${SANDBOXES}/{id}/sessions`]: {
    names: { "path id": sandbox("GET", "/sessions", 200) },
    plain: { "query before": ORDER },
  },
  "GET /api/v1/sessions/{sid}": {
    names: { "path sid": session("GET", "", 200) },
    plain: { "query before": "a message of the session alone" },
  },
  "POST /api/v1/sessions/{sid}/messages": {
    names: {
      "path sid": session("POST", "/messages", 409, { role: "user", content: [{ type: "text", text: "x" }] }),
    },
  },
  "POST /api/v1/sessions/{sid}/interrupt": { names: { "path sid": session("POST", "/interrupt", 409) } },
  "GET /api/v1/sessions/{sid}/stream": { plain: { "path sid": ENDLESS, "query last_event_id": "a number" } },
  [`GET ${SANDBOXES}/{id}/files`]: {
    names: { "path id": sandbox("GET", "/files", 409) },
    plain: { "query after": IN_SANDBOX },
  },
  [`GET ${SANDBOXES}/{id}/files/{*path}`]: { names: { "path id": sandbox("GET", "/files/a", 409) } },
  [`PUT ${SANDBOXES}/{id}/files/{*path}`]: {
    names: {
      "path id": {
        ...sandbox("PUT", "/files/a", 409),
        request: (id) => ({ method: "PUT", path: `${SANDBOXES}/${id}/files/a`, body: "x" }),
      },
    },
  },
  [`DELETE ${SANDBOXES}/{id}/files/{*path}`]: { names: { "path id": sandbox("DELETE", "/files/a", 409) } },
  ...Object.fromEntries(PORTS),

  [`POST ${WORKSPACES}`]: { plain: WORKSPACE_BODY },
  [`GET ${WORKSPACES}`]: {
    lists: { make: (tenant) => newWorkspace(tenant), request: () => ({ method: "GET", path: WORKSPACES }) },
    plain: {
      "query name": "of those that are listed",
      "query labels": "of those that are listed",
      "query before": ORDER,
    },
  },
  [`GET ${WORKSPACES}/{id}`]: { names: { "path id": workspace("GET", "", 200) } },
  [`PUT ${WORKSPACES}/{id}`]: {
    names: { "path id": workspace("PUT", "", 200, { name: "other" }) },
    plain: WORKSPACE_BODY,
  },
  [`DELETE ${WORKSPACES}/{id}`]: { names: { "path id": workspace("DELETE", "", 204) } },
  [`POST ${WORKSPACES}/{id}/launch`]: {
    names: {
      "path id": workspace("POST", "/launch", 202),
      "the workspace's image": { make: newImage, request: (id, asker) => launch(asker, { image: id }), answer: 202 },
      "the workspace's repositories[].credential_id": {
        make: newCredential,
        request: (id, asker) => launch(asker, { repositories: [{ url: `https://${HOST}/a/b`, credential_id: id }] }),
        answer: 202,
      },
      "the workspace's credentials[].credential_id": {
        make: newCredential,
        request: (id, asker) => launch(asker, { credentials: [{ credential_id: id, hosts: [HOST] }] }),
        answer: 202,
      },
      "the workspace's credentials[].name": {
        make: async (tenant) => {
          const label = newName();
          await newCredential(tenant, label);
          return label;
        },
        request: (name, asker) => launch(asker, { credentials: [{ name, hosts: [HOST] }] }),
        answer: 202,
      },
    },
    plain: { "body name": OWN_NAMES, "body labels": "of nothing but this sandbox" },
  },
  [`GET ${WORKSPACES}/{id}/sandboxes`]: {
    names: { "path id": workspace("GET", "/sandboxes", 200) },
    plain: { "query before": ORDER },
  },
  [`GET ${WORKSPACES}/{id}/export`]: { names: { "path id": workspace("GET", "/export", 200) } },
  [`POST ${WORKSPACES}/import`]: { plain: {} },

  [`POST ${IMAGES}/build`]: {
    names: {
      "the template's base": {
        make: newImage,
        request: (id) =>
          jsonRequest("POST", `${IMAGES}/build`, { provider: "codex", template_source: `base = "${id}"` }),
        answer: 202,
      },
    },
  },
  [`GET ${IMAGES}`]: {
    lists: { make: newImage, request: () => ({ method: "GET", path: IMAGES }) },
    plain: { "query before": ORDER },
  },
  [`GET ${IMAGES}/builds/{build_id}`]: {
    names: { "path build_id": about({ make: newBuild, base: `${IMAGES}/builds` })("GET", "", 200) },
  },
  [`PATCH ${IMAGES}/{image_id}`]: { names: { "path image_id": image("PATCH", "", 200, { shared: false }) } },
  [`DELETE ${IMAGES}/{image_id}`]: { names: { "path image_id": image("DELETE", "", 204) } },

  [`GET ${VOLUMES}`]: {
    lists: { make: newVolume, request: () => ({ method: "GET", path: VOLUMES }) },
    plain: { "query before": ORDER },
  },
  [`DELETE ${VOLUMES}/{id}`]: { names: { "path id": volume("DELETE", "", 204) } },

  "GET /v1/sandbox-nodes/jobs/{job_id}/order": { plain: { "path job_id": HOLDERS } },
  "GET /v1/sandbox-nodes/jobs/{job_id}/sessions/{sid}/history": {
    plain: { "path job_id": HOLDERS, "path sid": IN_SANDBOX },
  },
  "POST /v1/sandbox-nodes/jobs/{job_id}/batches": {
    plain: {
      "path job_id": HOLDERS,
      ...Object.fromEntries(
        [
          "events[].session_id",
          "turns[].session_id",
          "turns[].turn_id",
          "turns[].content[].id",
          "turns[].content[].name",
          "turns[].content[].tool_use_id",
          "turns[].agent_session_id",
        ].map((place) => [`body ${place}`, IN_SANDBOX]),
      ),
    },
  },
  "GET /v1/sandbox-nodes/layers/{build_id}/{fence}/{part}": {
    plain: { "path build_id": "of nodes that need it: test/sandbox-routes/nodes.test.ts" },
  },
  "POST /v1/sandbox-nodes/jobs/{job_id}/layer/{part}": { plain: { "path job_id": HOLDERS } },
};

const NODES = "nodes have no owner: admins alone admit them and see them";

export const SANDBOX_ROUTES_WITHOUT: Readonly<Record<string, string>> = {
  "GET /ready": "about the process",
  "POST /v1/sandbox-nodes/report": "what a node says of itself",
  "GET /v1/sandbox-nodes/link": "the node's own connection",
  "GET /v1/sandbox-nodes": NODES,
  "PUT /v1/sandbox-nodes/{id}/cap": NODES,
};
