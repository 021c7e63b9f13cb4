import type { KeyStyle } from "../credentials/credential.ts";
import { AGENTS } from "../../contract/agents/providers.ts";
import { canonicalHost } from "../../contract/host-names.ts";
import type { SandboxSpec } from "../../contract/spec.ts";

/** Where requests of a route go; `path` without a slash at its end. */
export type Upstream = { secure: boolean; host: string; port: number; path: string };

/** The API of the model that the agent of the sandbox asks. */
export type AgentRoute = { credentialId: string; upstream: Upstream; keyStyle: KeyStyle };

/** One repository, by smart HTTP. */
export type GitRoute = { credentialId: string; upstream: Upstream };

/** A host that is named directly. */
export type HostRoute = { credentialId: string; keyStyle: KeyStyle; isAgents: boolean };

export type GatewayRoutes = {
  agent: AgentRoute | undefined;
  /** By their place among `git_repos`. */
  git: ReadonlyMap<number, GitRoute>;
  /** By canonical name. TLS to them is ended by the gateway. */
  hosts: ReadonlyMap<string, HostRoute>;
};

export type RouteOptions = {
  /** Whether repositories may be reached over HTTP without TLS, with their credentials. */
  plainHttp?: boolean;
};

/** Where keys of models travel, by who speaks: the agent provider, or the host. */
const KEY_HEADERS: ReadonlyMap<string, string> = new Map([
  ["claude-code", "x-api-key"],
  ["opencode", "x-api-key"],
  ["gemini-cli", "x-goog-api-key"],
  ["api.anthropic.com", "x-api-key"],
  ["generativelanguage.googleapis.com", "x-goog-api-key"],
]);

/**
 * What the gateway of a sandbox does for it. `providerUrls`: where the APIs of agents are, by agent provider. A host that
 * two credentials are bound to gets the first.
 */
export function routesOf(
  spec: Pick<SandboxSpec, "agentProvider" | "credentials" | "gitRepos">,
  providerUrls: Readonly<Record<string, string>>,
  { plainHttp = false }: RouteOptions = {},
): GatewayRoutes {
  const agent = agentRoute(spec, providerUrls);
  const hosts = new Map<string, HostRoute>();
  for (const { credentialId, hosts: names } of spec.credentials ?? []) {
    const isAgents = agent?.credentialId === credentialId;
    for (const host of names) {
      if (hosts.has(host)) continue;
      const isUpstream = isAgents && agent.upstream.host === host;
      hosts.set(host, { credentialId, isAgents, keyStyle: isUpstream ? agent.keyStyle : keyStyleOf(host) });
    }
  }
  return { agent, git: gitRoutes(spec, plainHttp), hosts };
}

function agentRoute(
  { agentProvider, credentials = [] }: Pick<SandboxSpec, "agentProvider" | "credentials">,
  providerUrls: Readonly<Record<string, string>>,
): AgentRoute | undefined {
  const variable = AGENTS.get(agentProvider)?.apiKeyVariable;
  const url = Object.hasOwn(providerUrls, agentProvider) ? providerUrls[agentProvider] : undefined;
  const use = credentials.find(({ envVar }) => envVar !== undefined && envVar === variable);
  const upstream = url === undefined ? undefined : upstreamOf(url);
  // A node whose operator has the API elsewhere than the maker of the sandbox agreed to sends no key there.
  if (use === undefined || upstream === undefined || !use.hosts.includes(upstream.host)) return undefined;
  return { credentialId: use.credentialId, upstream, keyStyle: keyStyleOf(agentProvider) };
}

function gitRoutes({ gitRepos = [] }: Pick<SandboxSpec, "gitRepos">, plainHttp: boolean): Map<number, GitRoute> {
  const routes = new Map<number, GitRoute>();
  for (const [place, { url, credentialId }] of gitRepos.entries()) {
    const upstream = credentialId === undefined ? undefined : upstreamOf(url);
    if (credentialId === undefined || upstream === undefined || (!upstream.secure && !plainHttp)) continue;
    routes.set(place, { credentialId, upstream });
  }
  return routes;
}

function keyStyleOf(name: string): KeyStyle {
  const header = KEY_HEADERS.get(name);
  return header === undefined ? "bearer" : { header };
}

function upstreamOf(text: string): Upstream | undefined {
  const url = URL.parse(text);
  const host = canonicalHost(url?.hostname ?? "");
  if (url === null || host === undefined || !/^https?:$/.test(url.protocol)) return undefined;
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  return { secure, host, port, path: url.pathname.replace(/\/+$/, "") };
}
