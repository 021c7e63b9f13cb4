import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { systemClock } from "../../src/core/clock.ts";
import { messageOf } from "../../src/core/errors.ts";
import { systemRandom } from "../../src/core/random.ts";
import { AGENTS } from "../../src/sandbox/contract/agents/providers.ts";
import { listen, startNameServer } from "../../src/sandbox/network/egress/proxy.test-kit.ts";
import { GatewayAuthority } from "../../src/sandbox/network/gateway/authority.ts";
import { sweepMounts } from "../../src/sandbox/runtime/mounts.ts";
import { removeUnmounted } from "../../src/sandbox/runtime/removal.test-kit.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { ProviderServer } from "./provider-server.ts";
import {
  ALLOWED,
  DENIED,
  HIDDEN,
  PLACE,
  PROJECT,
  REAL_AGENTS,
  rulesOf,
  type RealAgent,
  type ToolRules,
} from "./real-agent-tools.ts";
import { fieldOf, outcomeOf, SandboxClient } from "./sandboxes.test-kit.ts";

/** What became of a real agent in a real sandbox, whose model allowed and denied tools were asked for by. */
export type RealAgentReport = {
  provider: string;
  /** Name and version on npm. */
  package: string;
  /** Until the agent said who it is. */
  startedMs: number;
  /** The whole conversation. */
  talkedMs: number;
  requests: number;
  /** What did not hold. */
  problems: string[];
};

/** The key that is outside alone, and a text that is inside alone. */
type Secrets = { key: string; hidden: string };

const LAST_WORDS = "All is done.";
const [HOST, FILES] = ["model.test", "files.test"];
/** Requests name addresses of name servers without ports: this one answers at the usual one. */
const NAME_SERVER = "127.53.0.6";
/** A denied tool ends the turn of some agents: they are told to go on. */
const MOST_MESSAGES = 4;
const SHOWN_CHARS = 1_000;
const INSTALL = fileURLToPath(new URL("../../.ci/install-agent", import.meta.url));

/** A server with a gateway for its sandboxes, and a provider with a scripted model behind it, as one machine has it. */
export class RealAgentLab {
  readonly #engine: Engine;
  readonly #servers: ReadonlyMap<string, ProviderServer>;
  readonly #close: () => Promise<void>;
  readonly #client: SandboxClient;
  readonly #agentsUrl: string;

  private constructor(
    engine: Engine,
    {
      servers,
      agentsUrl,
      close,
    }: { servers: Map<string, ProviderServer>; agentsUrl: string; close: () => Promise<void> },
  ) {
    this.#engine = engine;
    this.#servers = servers;
    this.#agentsUrl = agentsUrl;
    this.#close = close;
    this.#client = new SandboxClient(() => engine);
  }

  /** For these agent providers. */
  static async open(names: readonly string[]): Promise<RealAgentLab> {
    const folders = new Map<string, string>();
    for (const name of names) folders.set(name, await install(AGENTS.get(name)?.package ?? ""));
    const folder = mkdtempSync(join(tmpdir(), "engine-agents-"));
    const place = await temporaryHome();
    const authority = await GatewayAuthority.make({ clock: systemClock, random: systemRandom });
    const authorityFile = join(folder, "authority.crt");
    writeFileSync(authorityFile, authority.certificate);
    const nameServer = await startNameServer((name) => ([HOST, FILES].includes(name) ? "127.0.0.1" : undefined), {
      host: NAME_SERVER,
      port: 53,
    });
    const files = createServer((request, response) => pack(folders.get((request.url ?? "").slice(1)), response));
    const agentsUrl = `http://${FILES}:${await listen(files)}`;
    const servers = new Map<string, ProviderServer>();
    for (const name of names) {
      const steps = [...agentOf(name).tools, { text: LAST_WORDS }];
      const contextFor = (host: string) => authority.contextFor(host);
      servers.set(name, await new ProviderServer({ steps, contextFor }).start());
    }
    const engine = await startEngine({ home: place.home, env: environment(servers, authorityFile) });
    const close = async (): Promise<void> => {
      for (const server of servers.values()) server.close();
      files.close();
      await nameServer.close();
      await engine.stop();
      await sweepMounts(place.home);
      await place.remove();
      await removeUnmounted(folder);
    };
    return new RealAgentLab(engine, { servers, agentsUrl, close });
  }

  async close(): Promise<void> {
    await this.#close();
  }

  /** Has the agent in a sandbox of its own go through its tools. */
  async run(provider: string, rules: ToolRules = "kinds"): Promise<RealAgentReport> {
    const server = this.#servers.get(provider);
    if (server === undefined) throw new Error(`the lab was not opened for ${provider}`);
    const { package: name = "", apiKeyVariable = "" } = AGENTS.get(provider) ?? {};
    const agent = agentOf(provider);
    server.requests.length = 0;
    const hidden = `hidden-${randomBytes(8).toString("hex")}`;
    const key = `canary-${randomBytes(16).toString("hex")}`;
    const stored = await this.#post("/v1/credentials", { label: provider, value: { kind: "api_key", key } });
    const id = await this.#client.create({
      agent_provider: provider,
      agent_config: { model: agent.model, ...rulesOf(rules, agent) },
      working_directory: PROJECT,
      resource_limits: { disk_mb: 2_048, memory_mb: 3_072, cpu_cores: 2 },
      network: { enabled: true, allowed_hosts: [FILES], dns_servers: [NAME_SERVER] },
      credentials: [{ credential_id: String(fieldOf(stored, "id")), env_var: apiKeyVariable }],
      provisioning_scripts: [
        { user: "agent", script: `mkdir ${PLACE} && curl -sSf ${this.#agentsUrl}/${provider} | tar -xf - -C ${PLACE}` },
        { user: "agent", script: `echo ${hidden} > ${HIDDEN}` },
        { user: "agent", script: projectScript(agent) },
      ],
    });
    try {
      const startedMs = await this.#startedMs(id);
      const beganMs = performance.now();
      const problems = await this.#converse(id);
      const talkedMs = Math.round(performance.now() - beganMs);
      problems.push(...(await this.#look(id, apiKeyVariable, { key, hidden })), ...seenBy(server, { key, hidden }));
      return { provider, package: name, startedMs, talkedMs, requests: server.requests.length, problems };
    } finally {
      await this.#client.call("DELETE", `/${id}`);
      await this.#client.reaches(id, "gone");
    }
  }

  async #post(path: string, body: unknown): Promise<unknown> {
    const response = await fetch(this.#engine.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  /** Until the model has said its last words, or no more is to be expected of it. */
  async #converse(id: string): Promise<string[]> {
    const session = String(fieldOf(await this.#post(`/api/v1/sandboxes/${id}/sessions`, {}), "id"));
    let said = "";
    for (let i = 0; i < MOST_MESSAGES && !said.includes(LAST_WORDS); i++) {
      const content = [{ type: "text", text: i === 0 ? "Do what you have to do." : "Go on." }];
      try {
        said += JSON.stringify(await this.#post(`/api/v1/sessions/${session}/messages`, { role: "user", content }));
      } catch (error) {
        return [`a turn failed: ${messageOf(error)}`];
      }
    }
    return said.includes(LAST_WORDS) ? [] : [`it did not come to its end: ${said.slice(-SHOWN_CHARS)}`];
  }

  /** How long the sandbox took to start its agent. */
  async #startedMs(id: string): Promise<number> {
    const response = await fetch(`${this.#engine.url}/api/v1/sandboxes/${id}/stream?from=start`);
    const times: number[] = [];
    let text = "";
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (text + piece).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines.filter((one) => one.includes('"step":"StartAgent"'))) {
        const event: unknown = JSON.parse(line.slice("data: ".length));
        times.push(Date.parse(String(fieldOf(event, "timestamp"))));
      }
      if (times.length > 1) break;
    }
    const [began = Number.NaN, ended = Number.NaN] = times;
    return ended - began;
  }

  /** What is inside. */
  async #look(id: string, variable: string, { key, hidden }: Secrets): Promise<string[]> {
    const problems: string[] = [];
    const statusOf = async (path: string) => (await this.#client.call("GET", `/${id}/files${path}`)).status;
    if ((await statusOf(ALLOWED)) !== 200) problems.push("the allowed tool did not run");
    if ((await statusOf(DENIED)) !== 404) problems.push("a denied tool ran: it wrote a file");
    const { stdout } = await this.#client.exec(id, `printenv ${variable}`);
    if (stdout.trim() === "" || stdout.includes(key)) problems.push(`${variable} is no placeholder`);
    const patterns = [key, hidden].map((text) => `[${text[0]}]${text.slice(1)}`).join("|");
    const search =
      "{ cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; " +
      `find /home /root /etc /tmp /run /var -xdev -type f -not -path '${PLACE}/*' -exec cat {} + 2>/dev/null; } | ` +
      `grep -aohE '${patterns}'`;
    for (const user of ["agent", "root"]) {
      const { text } = await this.#client.call("POST", `/${id}/exec/stream`, { command: search, user });
      const found = outcomeOf(text).stdout;
      if (found.includes(key)) problems.push(`${user} finds the key inside`);
      // What is there is found.
      if (!found.includes(hidden)) problems.push(`the search of ${user} failed: ${text.slice(0, SHOWN_CHARS)}`);
    }
    if (this.#engine.log().includes(key)) problems.push("the key is in the log of the server");
    return problems;
  }
}

/** Of the server. */
function environment(servers: ReadonlyMap<string, ProviderServer>, authorityFile: string): Record<string, string> {
  const urls = [...servers].map(([name, { port }]) => `${name}=https://${HOST}:${port}/base`);
  return {
    ENGINE_SANDBOX_WARM_POOL: "0",
    ENGINE_SECRET_KEY: randomBytes(32).toString("base64"),
    ENGINE_SANDBOX_CA_FILE: authorityFile,
    ENGINE_SANDBOX_EGRESS_RANGES: "127.0.0.0/8",
    ENGINE_SANDBOX_PROVIDER_URLS: urls.join(","),
    ENGINE_SANDBOX_AGENT_COMMANDS: [...servers.keys()].map((name) => `${name}=${commandOf(name)}`).join(";"),
  };
}

/** What the provider saw. */
function seenBy({ requests }: ProviderServer, { key, hidden }: Secrets): string[] {
  const problems: string[] = [];
  const asked = requests.filter(({ tools }) => tools.length > 0);
  if (asked.length === 0) problems.push("the model was never asked");
  const keys = ({ headers }: (typeof requests)[number]) =>
    [headers.authorization, headers["x-api-key"], headers["x-goog-api-key"]].filter((value) => value !== undefined);
  for (const request of requests) {
    const given = keys(request);
    const isKey = given.length === 1 && (given[0] === key || given[0] === `Bearer ${key}`);
    if (!isKey) problems.push(`${request.method} ${request.path} came with ${given.length} keys, or another one`);
  }
  const told = JSON.stringify(asked.map(({ body }) => body));
  if (told.includes(hidden)) problems.push("a denied tool ran: it read a file");
  return problems;
}

function agentOf(provider: string): RealAgent {
  const agent = REAL_AGENTS.get(provider);
  if (agent === undefined) throw new Error(`there is no agent provider ${provider}`);
  return agent;
}

/** Makes the project, in which nobody has to be trusted. */
function projectScript({ project }: RealAgent): string {
  const files = Object.entries(project).map(([name, content]) => {
    const path = `${PROJECT}/${name}`;
    return `mkdir -p ${dirname(path)} && echo ${Buffer.from(content).toString("base64")} | base64 -d > ${path}`;
  });
  return files.join(" && ");
}

function commandOf(provider: string): string {
  const { command, byNode } = agentOf(provider);
  return `${byNode ? `${PLACE}/${basename(process.execPath)} ` : ""}${PLACE}/node_modules/${command}`;
}

async function install(name: string): Promise<string> {
  return (await promisify(execFile)(INSTALL, [name])).stdout.trim();
}

/** The folder of an agent, and Node.js as it runs here. */
function pack(folder: string | undefined, response: ServerResponse): void {
  if (folder === undefined) {
    response.writeHead(404).end();
    return;
  }
  const node = ["-C", dirname(process.execPath), basename(process.execPath)];
  const tar = spawn("tar", ["-chf", "-", "-C", folder, "node_modules", ...node], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  tar.stdout.pipe(response);
}
