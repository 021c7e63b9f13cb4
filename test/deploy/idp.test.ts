import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AUTH_OPTIONS } from "../../src/auth/options.ts";
import { adminAccess } from "../../src/deploy/local/programs.ts";
import { systemClock, type Clock } from "../../src/core/clock.ts";
import { runDeploy } from "./run-deploy.test-kit.ts";

/** `engine deploy init` against a scripted management API, with this test in the place of person and browser. */

const [CLIENT_ID, CLIENT_SECRET, ACCESS_TOKEN] = ["app-1", "sba_confidential", "sbp_oauth_access"];
const REF = "abcdefghijklmnopqrst";
const jwtOf = (role: string) => `e30.${Buffer.from(JSON.stringify({ role })).toString("base64url")}.c2ln`;
const ANON_KEY = jwtOf("anon");

type Reply = { status: number; body?: unknown; headers?: Record<string, string> };
type Asked = { method: string; path: string; headers: IncomingMessage["headers"]; body: string };

const project = (more: object = {}) => ({
  id: REF,
  ref: REF,
  organization_id: "acme",
  name: "Shop",
  region: "eu-central-1",
  status: "ACTIVE_HEALTHY",
  database: { host: `db.${REF}.supabase.co`, version: "15" },
  ...more,
});

let home: string;
let base: string;
let asked: Asked[];
/** By method and path; several replies are given one after the other, the last of them from then on. */
let script: Record<string, Reply[]>;
/** What the provider's page sends the browser back with. */
let consent: (state: string) => Record<string, string>;
let challenge: string;
let provider: ReturnType<typeof createServer>;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "engine-idp-"));
  mkdirSync(join(home, "bin"));
  asked = [];
  consent = (state) => ({ state, code: "code-1" });
  script = {
    "POST /v1/oauth/token": [
      { status: 201, body: { access_token: ACCESS_TOKEN, refresh_token: "r", expires_in: 3600, token_type: "Bearer" } },
    ],
    "GET /v1/organizations": [{ status: 200, body: [{ id: "acme", name: "Acme" }] }],
    "GET /v1/projects": [{ status: 200, body: [project()] }],
    [`GET /v1/projects/${REF}/api-keys`]: [
      {
        status: 200,
        body: [
          { name: "service_role", api_key: jwtOf("service_role") },
          { name: "anon", api_key: ANON_KEY },
        ],
      },
    ],
    [`GET /v1/projects/${REF}/config/auth`]: [
      { status: 200, body: { site_url: "http://localhost:3000", uri_allow_list: "https://shop.example.com/in" } },
    ],
    [`PATCH /v1/projects/${REF}/config/auth`]: [{ status: 200, body: {} }],
  };
  provider = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
  await once(provider, "listening");
  base = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
});
afterEach(() => {
  provider.close();
  provider.closeAllConnections();
  rmSync(home, { recursive: true, force: true });
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { pathname: path, searchParams } = new URL(request.url ?? "", base);
  const method = request.method ?? "";
  asked.push({ method, path, headers: request.headers, body: Buffer.concat(chunks).toString("utf8") });
  if (path === "/v1/oauth/authorize") {
    challenge = searchParams.get("code_challenge") ?? "";
    const back = new URL(searchParams.get("redirect_uri") ?? "");
    for (const [name, value] of Object.entries(consent(searchParams.get("state") ?? ""))) {
      back.searchParams.set(name, value);
    }
    response.writeHead(302, { Location: back.href }).end();
    return;
  }
  const replies = script[`${method} ${path}`] ?? [{ status: 404 }];
  const { status, body, headers = {} } = (replies.length > 1 ? replies.shift() : replies[0]) ?? { status: 404 };
  response.writeHead(status, headers).end(body === undefined ? "" : JSON.stringify(body));
}

const CLOUD = ["init", "--region", "eu-central-1", "--domain", "engine.example.com"];
const LATER = ["-", "-", "-"];

/** Without a browser: whoever reads the address opens it. */
async function init(words: readonly string[], answers: readonly string[], { clock }: { clock?: Clock } = {}) {
  let shown = "";
  const pages: Promise<unknown>[] = [];
  const onStderr = (text: string) => {
    shown += text;
    const address = /^(http:\S+\/v1\/oauth\/authorize\S+)\n/m.exec(shown)?.[1];
    if (address !== undefined && pages.length === 0) pages.push(fetch(address).then((page) => page.text()));
  };
  const run = await runDeploy(home, words, environment(), { answers, onStderr, ...(clock && { clock }) });
  await Promise.allSettled(pages);
  return run;
}

const environment = () => ({
  PATH: join(home, "bin"),
  ENGINE_IDP_API_BASE: base,
  ENGINE_IDP_OAUTH_CLIENT_ID: CLIENT_ID,
  ENGINE_IDP_OAUTH_CLIENT_SECRET: CLIENT_SECRET,
});

const variables = () =>
  JSON.parse(readFileSync(join(home, "deployments/prod/terraform.tfvars.json"), "utf8")) as { env: unknown };
const writtenText = () =>
  readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => readFileSync(join(one.parentPath, one.name), "utf8"))
    .join("\n");
const bodyOf = (method: string, path: string) => asked.find((one) => one.method === method && one.path === path)?.body;

describe("init with an identity provider", () => {
  it("signs in with PKCE, takes a project, sets addresses, and fills the settings of a cloud deployment", async () => {
    const { code, stdout, stderr } = await init(CLOUD, [...LATER, "1"]);
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining("No browser could be started") });
    expect(variables().env).toEqual({
      ENGINE_IDP_URL: `https://${REF}.supabase.co`,
      ENGINE_IDP_ANON_KEY: ANON_KEY,
    });
    expect(JSON.parse(bodyOf("PATCH", `/v1/projects/${REF}/config/auth`) ?? "")).toEqual({
      site_url: "https://engine.example.com",
      uri_allow_list: "https://shop.example.com/in,https://engine.example.com,https://engine.example.com/**",
    });
    const token = asked.find(({ path }) => path === "/v1/oauth/token");
    const form = new URLSearchParams(token?.body);
    const basic = Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString("base64");
    expect([...form.keys()]).not.toContain("client_secret");
    const verifier = form.get("code_verifier") ?? "";
    expect(challenge).toBe(createHash("sha256").update(verifier).digest("base64url"));
    const said = stdout + stderr + writtenText();
    for (const secret of [CLIENT_SECRET, basic, ACCESS_TOKEN, verifier, jwtOf("service_role")]) {
      expect(said).not.toContain(secret);
    }
  });

  it("makes a project for a local deployment, waits until it is ready, and keeps the ports that it told", async () => {
    const organizations = ["Acme", "Labs"].map((name) => ({ id: name.toLowerCase(), name }));
    script["GET /v1/organizations"] = [{ status: 200, body: organizations }];
    script["GET /v1/projects"] = [
      { status: 200, body: [] },
      { status: 200, body: [project({ status: "COMING_UP", database: undefined })] },
      { status: 200, body: [project()] },
    ];
    script["POST /v1/projects"] = [{ status: 201, body: { id: REF, name: "engine-lab" } }];
    const words = ["init", "--name", "lab", "--target", "local"];
    const run = await init(words, ["2", "eu-west-1"], { clock: hasty() });
    expect(run).toMatchObject({ code: 0, stderr: expect.stringContaining("waiting until it is ready") });
    const made = JSON.parse(bodyOf("POST", "/v1/projects") ?? "") as { db_pass: string };
    expect(made).toMatchObject({ name: "engine-lab", organization_id: "labs", region: "eu-west-1" });
    expect(run.stdout + run.stderr + writtenText()).not.toContain(made.db_pass);
    const read = (path: string) => readFileSync(join(home, "deployments/lab", path), "utf8");
    expect(read("engine.toml")).toContain(
      `auth.idp_url = "https://${REF}.supabase.co"\nauth.idp_anon_key = "${ANON_KEY}"`,
    );
    const { ports } = JSON.parse(read("local/layout.json")) as { ports: Record<string, number> };
    expect(JSON.parse(bodyOf("PATCH", `/v1/projects/${REF}/config/auth`) ?? "")).toMatchObject({
      site_url: `http://127.0.0.1:${ports["edge-1"]}`,
      uri_allow_list: expect.stringContaining(`http://127.0.0.1:${ports["edge-2"]}/**`),
    });
  });

  it("starts the browser with the address, and without the app's secret", async () => {
    const program = process.platform === "darwin" ? "open" : "xdg-open";
    const file = join(home, "bin", program);
    writeFileSync(
      file,
      `#!/bin/sh\n{ echo "$#"; echo "$1"; export -p; } > '${home}/opened.part'\n/bin/mv '${home}/opened.part' '${home}/opened'\n`,
    );
    chmodSync(file, 0o755);
    expect(await init(CLOUD, [...LATER, "1"])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("Sign in in the browser"),
    });
    await expect.poll(() => existsSync(join(home, "opened"))).toBe(true);
    const opened = readFileSync(join(home, "opened"), "utf8");
    expect(opened).toMatch(/^1\nhttp:\/\/127\.0\.0\.1:\d+\/v1\/oauth\/authorize\?\S*code_challenge_method=S256\S*\n/);
    expect(opened).not.toContain("ENGINE_");
  });

  it.each([
    ["--print-only", [...CLOUD, "--print-only"], [...LATER]],
    ["--yes", [...CLOUD, "--yes"], []],
    ["--json", [...CLOUD, "--json"], []],
  ])("calls nothing with %s", async (_, words, answers) => {
    expect(await init(words, answers)).toMatchObject({ code: 0 });
    expect(asked).toEqual([]);
  });

  it("calls nothing without a terminal, and refuses half of an app", async () => {
    expect(await runDeploy(home, CLOUD, environment())).toMatchObject({ code: 0 });
    const half = { ...environment(), ENGINE_IDP_OAUTH_CLIENT_SECRET: "" };
    expect(await runDeploy(home, [...CLOUD, "--force"], half, { answers: LATER })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("belong together"),
    });
    expect(asked).toEqual([]);
  });
});

/** A clock whose waits are over at once and yet count. */
function hasty(): Clock {
  let skippedMs = 0;
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + skippedMs,
    after(delayMs, task, options) {
      // Limits stay what they are: those of requests are in the background, that of a person is minutes.
      if (options?.background === true || delayMs > 60_000) return systemClock.after(delayMs, task, options);
      skippedMs += delayMs;
      return systemClock.after(0, task, options);
    },
  };
}

const API = { keys: `GET /v1/projects/${REF}/api-keys`, projects: "GET /v1/projects", token: "POST /v1/oauth/token" };
type Case = [string, () => void, number, string];

describe("a failure is a sentence, an exit code, and no deployment", () => {
  const replies = (name: string, status: number, body?: unknown, headers?: Record<string, string>) => () => {
    script[name] = [{ status, body, ...(headers && { headers }) }];
  };
  const answers = (back: typeof consent) => () => {
    consent = back;
  };
  const cases: Case[] = [
    ["refused consent", answers((state) => ({ state, error: "access_denied" })), 4, "consent was refused"],
    ["an error code with an escape", answers((state) => ({ state, error: "\u001b[2J" })), 4, "(unknown_error)"],
    ["a wrong state", answers(() => ({ state: "x".repeat(43), code: "code-1" })), 4, "wrong state"],
    ["no state", answers(() => ({ code: "code-1" })), 4, "wrong state"],
    ["no code", answers((state) => ({ state })), 4, "without a code"],
    ["an expired code", replies(API.token, 400, { error: "invalid_grant" }), 4, "has expired or was used"],
    ["an unknown app", replies(API.token, 401, { error: "invalid_client" }), 4, "does not know the app"],
    ["a 401 without a code", replies(API.token, 401, { message: CLIENT_SECRET }), 4, "sent no token (status 401)"],
    ["a broken token endpoint", replies(API.token, 500, { message: ACCESS_TOKEN }), 1, "sent no token (status 500)"],
    ["a redirected token request", replies(API.token, 307, undefined, { Location: "/v1/projects" }), 1, "status 307"],
    [
      "a token that is no header",
      replies(API.token, 200, { access_token: "a\r\nb", token_type: "bearer" }),
      1,
      "no token",
    ],
    ["a 401", replies(API.projects, 401), 4, "GET /v1/projects: the provider answered 401"],
    ["a 403", replies(API.keys, 403, { message: `no scope for ${ACCESS_TOKEN}` }), 4, "the app or its user may not"],
    ["a 429", replies(API.projects, 429, {}, { "Retry-After": "17" }), 1, "wait 17 s"],
    ["a 500", replies(API.projects, 500, { message: "up\u001b[2J" }), 1, "\\u001b[2J"],
    ["no JSON", replies(API.projects, 200, undefined), 1, "invalid answer (the whole)"],
    ["a paused project", replies(API.projects, 200, [project({ status: "INACTIVE" })]), 1, "is INACTIVE"],
    [
      "a project that stays",
      replies(API.projects, 200, [project({ status: "COMING_UP" })]),
      1,
      "not ready after 10 min",
    ],
    ["a ref of a path", replies(API.projects, 200, [project({ ref: "../../x" })]), 1, "invalid answer (0.ref)"],
    ["a ref of a host", replies(API.projects, 200, [project({ ref: "evil.example/" })]), 1, "invalid answer (0.ref)"],
    [
      "a host of another project",
      replies(API.projects, 200, [project({ database: { host: "db.x.supabase.co" } })]),
      1,
      "does not say where",
    ],
    [
      "a host with a path",
      replies(API.projects, 200, [project({ database: { host: `db.${REF}.a.co/x` } })]),
      1,
      "does not say where",
    ],
    [
      "a secret key for anon",
      replies(API.keys, 200, [{ name: "anon", api_key: jwtOf("service_role") }]),
      1,
      "no key for browsers",
    ],
    ["a new secret key", replies(API.keys, 200, [{ name: "anon", api_key: "sb_secret_x" }]), 1, "no key for browsers"],
    ["no key", replies(API.keys, 200, []), 1, "no key for browsers"],
  ];
  it.each(cases)("%s", async (_, prepare, code, sentence) => {
    prepare();
    const run = await init(CLOUD, [...LATER, "1"], { clock: hasty() });
    expect(run).toMatchObject({ code, stderr: expect.stringContaining(sentence) });
    expect(run.stderr).not.toContain("\u001b[2J");
    for (const secret of [CLIENT_SECRET, ACCESS_TOKEN]) expect(run.stderr).not.toContain(secret);
    expect(existsSync(join(home, "deployments/prod/deployment.json"))).toBe(false);
    expect(asked.filter(({ method }) => method === "PATCH")).toEqual([]);
  });

  it("nobody signs in", async () => {
    const impatient: Clock = { ...systemClock, after: (_ms, task, options) => systemClock.after(50, task, options) };
    const run = await runDeploy(home, CLOUD, environment(), { answers: LATER, clock: impatient });
    expect(run).toMatchObject({ code: 4, stderr: expect.stringContaining("nobody signed in within 5 min") });
  });

  it("an address of another application is replaced after a question only", async () => {
    const auth = { site_url: "https://shop.example.com", uri_allow_list: null };
    script[`GET /v1/projects/${REF}/config/auth`] = [{ status: 200, body: auth }];
    const run = await init(CLOUD, [...LATER, "1", "n"]);
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining("https://shop.example.com") });
    expect(asked.filter(({ method }) => method === "PATCH")).toEqual([]);
    expect(await init(CLOUD, [...LATER, "1", "y"])).toMatchObject({ code: 0 });
    expect(asked.filter(({ method }) => method === "PATCH")).toHaveLength(1);
  });

  it.each(["0", "2", "1x", ""])("the project %j is none of the list", async (text) => {
    expect(await init(CLOUD, [...LATER, text])).toMatchObject({ code: 2 });
  });
});

it("takes the answer at one address only, asked for by its own name", async () => {
  const seen: number[] = [];
  let address = "";
  consent = (state) => ({ state, error: "access_denied" });
  const visit = async () => {
    const redirect = new URL(address).searchParams.get("redirect_uri") ?? "";
    const status = async (url: string, request: RequestInit = {}) => seen.push((await fetch(url, request)).status);
    await status(new URL("/favicon.ico", redirect).href);
    await status(`${redirect}?state=x`, { method: "POST" });
    await status(`${redirect.replace("127.0.0.1", "localhost")}?state=x`);
    await fetch(address);
  };
  let visits: Promise<void> | undefined;
  const run = await runDeploy(home, CLOUD, environment(), {
    answers: LATER,
    onStderr(text) {
      address ||= /^http:\S+\/authorize\S+/m.exec(text)?.[0] ?? "";
      if (address !== "") visits ??= visit();
    },
  });
  await visits;
  expect(run).toMatchObject({ code: 4, stderr: expect.stringContaining("consent was refused") });
  expect(seen).toEqual([404, 404, 404]);
});

it("the admin token of a local deployment is good with every backend, beside keys of its own", () => {
  const text = "ci:write:c:1,plain";
  const securityApiKeys = AUTH_OPTIONS.securityApiKeys.kind.parse(text, { baseDir: home, userHome: home }) ?? [];
  expect(adminAccess({ securityApiKeys }, "t")).toEqual({ ENGINE_SECURITY_API_KEYS: `admin:admin:t,${text}` });
});
