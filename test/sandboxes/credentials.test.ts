import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { request as requestHttp, type IncomingMessage, type RequestListener } from "node:http";
import { createServer, type Server } from "node:https";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { certificateFolder, makeCertificate } from "../../src/io/http/tls.test-kit.ts";
import { listen, startNameServer } from "../../src/sandbox/network/egress/proxy.test-kit.ts";
import { makeRepository, startGitServer, type GitServer } from "../../src/sandbox/network/git-server.test-kit.ts";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { fieldOf, outcomeOf } from "./sandboxes.test-kit.ts";
import { sandboxServer, TIMEOUT_MS } from "./server.test-kit.ts";

/** Requests name addresses of name servers without ports: this one answers at the usual one. */
const NAME_SERVER = "127.53.0.5";
const NAMES = ["model.test", "api.test", "git.test"];

/** Secrets that nothing inside, and nothing that is written, may show. */
const secretOf = (name: string): string => `canary-${name}-${randomBytes(12).toString("hex")}`;
const [KEY, TOKEN, PAT] = [secretOf("key"), secretOf("token"), secretOf("pat")];
const BASIC = Buffer.from(`x-access-token:${PAT}`).toString("base64");
const SECRETS = [KEY, TOKEN, PAT, BASIC];

const SECRET_KEY = randomBytes(32).toString("base64");

type Seen = { host: string | undefined; path: string; headers: IncomingMessage["headers"] };

describeInCage("credentials of a real sandbox", () => {
  const folder = certificateFolder();
  const ids = { key: "", token: "", pat: "" };
  /** Requests that arrived at the servers of the test. */
  const seen: Seen[] = [];
  let refusals = 0;
  let authority: Awaited<ReturnType<typeof makeCertificate>>;
  let names: Awaited<ReturnType<typeof startNameServer>>;
  let git: GitServer;
  let upstream: Server;
  let port: number;
  let sandbox: string;

  const answer: RequestListener = (request, response) => {
    const [host] = (request.headers.host ?? "").split(":");
    seen.push({ host, path: request.url ?? "", headers: request.headers });
    if (refusals > 0) {
      refusals--;
      response.writeHead(401).end("no");
    } else if (host !== "git.test") response.end(`hello from ${host}`);
    else if (request.headers.authorization === `Basic ${BASIC}`) forwardTo(git.port, request, response);
    else response.writeHead(401, { "www-authenticate": "Basic" }).end();
  };

  // Before the server of the sandboxes, which is told of them.
  beforeAll(async () => {
    authority = await makeCertificate(folder, "authority", { names: ["DNS:authority.test"] });
    const pair = await makeCertificate(folder, "origin", {
      names: NAMES.map((name) => `DNS:${name}` as const),
      authority,
    });
    upstream = createServer({ cert: readFileSync(pair.certPath), key: readFileSync(pair.keyPath) }, answer);
    port = await listen(upstream);
    makeRepository(join(folder, "app.git"));
    makeRepository(join(folder, "other.git"));
    execFileSync("git", ["-C", join(folder, "app.git"), "config", "http.receivepack", "true"]);
    git = await startGitServer(folder);
    names = await startNameServer((name) => (NAMES.includes(name) ? "127.0.0.1" : undefined), {
      host: NAME_SERVER,
      port: 53,
    });
  });
  const server = sandboxServer(() => ({
    ENGINE_SECRET_KEY: SECRET_KEY,
    ENGINE_SANDBOX_CA_FILE: authority.certPath,
    ENGINE_SANDBOX_EGRESS_RANGES: "127.0.0.0/8",
    ENGINE_SANDBOX_PROVIDER_URLS: `codex=https://model.test:${port}/base`,
    ENGINE_LOG_LEVEL: "debug",
  }));
  const { client } = server;
  const store = async (label: string, value: Record<string, string>): Promise<string> => {
    const response = await fetch(`${server.url}/v1/credentials`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ label, value }),
    });
    return String(fieldOf(await response.json(), "id"));
  };
  const run = (command: string) => client.exec(sandbox, command);
  const curl = (url: string, more = "") => run(`curl -sS --max-time 20 -w ' %{http_code}' ${more} ${url}`);
  const last = () => seen.at(-1);

  beforeAll(async () => {
    ids.key = await store("model", { kind: "api_key", key: KEY });
    ids.token = await store("api", { kind: "pat", token: TOKEN });
    ids.pat = await store("git", { kind: "pat", token: PAT });
    sandbox = await client.create({
      resource_limits: { disk_mb: 128 },
      persistence: "persistent",
      network: { dns_servers: [NAME_SERVER] },
      credentials: [
        { credential_id: ids.key, env_var: "OPENAI_API_KEY" },
        { credential_id: ids.token, env_var: "API_TOKEN", hosts: ["api.test"] },
      ],
      git_repos: [{ url: `https://git.test:${port}/app.git`, credential_id: ids.pat }],
    });
  }, TIMEOUT_MS);
  afterAll(async () => {
    upstream.closeAllConnections();
    upstream.close();
    git.close();
    await names.close();
  });

  const reachesAll = async (): Promise<void> => {
    const model = await curl("http://127.0.0.1:3128/_engine/agent/v1/models?key=x", '-H "x-api-key: $OPENAI_API_KEY"');
    expect(model.stdout).toBe("hello from model.test 200");
    expect(last()).toMatchObject({ path: "/base/v1/models", headers: { authorization: `Bearer ${KEY}` } });
    expect(last()?.headers["x-api-key"]).toBeUndefined();
    const api = await curl(`https://api.test:${port}/x`, '-H "Authorization: Bearer $API_TOKEN" -H "Cookie: a=b"');
    expect(api.stdout).toBe("hello from api.test 200");
    expect(last()).toMatchObject({ path: "/x", headers: { authorization: `Bearer ${TOKEN}` } });
    expect(last()?.headers.cookie).toBeUndefined();
  };

  it("are added to its requests outside of it, in place of what it sent", { timeout: TIMEOUT_MS }, async () => {
    await reachesAll();
  });

  it("are for their hosts and over TLS alone", { timeout: TIMEOUT_MS }, async () => {
    const before = seen.length;
    expect((await curl(`http://api.test:${port}/x`)).stdout).toMatch(/ 403$/);
    expect((await run(`curl -sS --max-time 20 https://git.test:${port}/app.git 2>&1`)).stdout).toContain("403");
    expect(seen).toHaveLength(before);
  });

  it("clone the repository that names one, and push to it, and to no other", { timeout: TIMEOUT_MS }, async () => {
    const inside = await run(
      "{ cd app && git config remote.origin.url && git config user.name a && git config user.email a@b.test && " +
        "echo more > more && git add more && git commit -qm more && git push -q origin main && git rev-parse HEAD; } 2>&1",
    );
    const [url, head] = inside.stdout.trim().split("\n");
    expect(url).toBe(`https://git.test:${port}/app.git`);
    const pushed = execFileSync("git", ["-C", join(folder, "app.git"), "rev-parse", "main"], { encoding: "utf8" });
    expect(pushed.trim()).toBe(head);
    const before = seen.length;
    const route = "http://127.0.0.1:3128/_engine/git";
    for (const path of ["0/../other.git/info/refs?service=git-upload-pack", "0/x", "0/HEAD", "1/info/refs"]) {
      const { stdout } = await curl(`--path-as-is '${route}/${path}'`);
      expect([path, stdout]).toEqual([path, expect.stringMatching(/ 40[34]$/)]);
    }
    expect((await run(`git ls-remote https://git.test:${port}/other.git`)).exitCode).not.toBe(0);
    expect(seen).toHaveLength(before);
  });

  it("go on when the process of their node is killed", { timeout: TIMEOUT_MS }, async () => {
    await server.stop("SIGKILL");
    await server.start();
    await client.reaches(sandbox, "running");
    await expect.poll(async () => (await run("true")).exitCode).toBe(0);
    await reachesAll();
  });

  it("go on when its machine is another one, with the same disk", { timeout: TIMEOUT_MS }, async () => {
    for (const [action, state] of [
      ["stop", "stopped"],
      ["start", "running"],
    ] as const) {
      await client.call("POST", `/${sandbox}/${action}`);
      await client.reaches(sandbox, state);
    }
    await reachesAll();
  });

  it("are nowhere inside, and in nothing that is said or stored", { timeout: TIMEOUT_MS }, async () => {
    const said: string[] = [server.log()];
    for (const user of ["agent", "root"]) {
      const command =
        "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; git -C /home/agent/app config --list; " +
        `grep -rlaE '${SECRETS.map((secret) => `[${secret[0]}]${secret.slice(1)}`).join("|")}' ` +
        "/home /root /etc /tmp /run /var /workspace 2>/dev/null && echo F''OUND; " +
        "grep -rlaE '[i]nsteadOf|[h]ttps://git.test' /home";
      const stdout = outcomeOf((await client.call("POST", `/${sandbox}/exec/stream`, { command, user })).text).stdout;
      expect(stdout).toContain("OPENAI_API_KEY=");
      expect(stdout).not.toContain("FOUND");
      expect(stdout).toContain("/home/agent/app/.git/config");
      said.push(stdout);
    }
    for (const path of ["", `/${sandbox}`, `/${sandbox}/logs`]) said.push((await client.call("GET", path)).text);
    for (const path of ["/v1/admin/audit?limit=1000", "/v1/jobs?limit=1000", "/v1/credentials", "/metrics"]) {
      said.push(await (await fetch(server.url + path)).text());
    }
    const spec = fieldOf((await client.call("GET", `/${sandbox}`)).json, "spec");
    expect(fieldOf(spec, "credentials")).toEqual([
      { credential_id: ids.key, env_var: "OPENAI_API_KEY", hosts: ["model.test"] },
      { credential_id: ids.token, env_var: "API_TOKEN", hosts: ["api.test"] },
    ]);
    expect(said.filter((text) => text.includes("credential.use"))).toHaveLength(1);
    for (const secret of SECRETS) expect(said.filter((text) => text.includes(secret))).toEqual([]);
    expect(await filesWith(server.home, [ids.pat])).not.toBe("");
    expect(await filesWith(server.home, SECRETS)).toBe("");
  });

  it("are refused once they are deleted", { timeout: TIMEOUT_MS }, async () => {
    await fetch(`${server.url}/v1/credentials/${ids.token}`, { method: "DELETE" });
    refusals = 1;
    expect((await curl(`https://api.test:${port}/x`)).stdout).toBe("no 401");
    // What an upstream did not take is asked for again, after a moment.
    await expect
      .poll(async () => (await curl(`https://api.test:${port}/x`)).stdout)
      .toMatch(new RegExp(`${ids.token}.* 502$`, "s"));
  });
});

/** Names of files in which one of the texts is; not of what is mounted there: that is what is inside. */
async function filesWith(folder: string, texts: readonly string[]): Promise<string> {
  const patterns = texts.flatMap((text) => ["-e", text]);
  const find = ["-c", 'find "$0" -xdev -type f -exec grep -laF "$@" {} +; true', folder, ...patterns];
  return (await promisify(execFile)("/bin/sh", find)).stdout;
}

/** As it came, to a server on this computer. */
function forwardTo(port: number, request: IncomingMessage, response: Parameters<RequestListener>[1]): void {
  const { method, url, headers } = request;
  const sent = requestHttp({ host: "127.0.0.1", port, method, path: url, headers }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.headers);
    answered.pipe(response);
  });
  request.pipe(sent);
}
