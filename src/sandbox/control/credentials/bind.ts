import { NO_OWNER, ownerOf } from "../../../auth/owner.ts";
import { EngineError } from "../../../core/errors.ts";
import type { JobOwner } from "../../../fabric/job.ts";
import { AGENTS } from "../../contract/agents/providers.ts";
import { credentialIdsIn } from "../../contract/credential-uses.ts";
import { canonicalHost } from "../../contract/host-names.ts";
import { repositoryHost } from "../../contract/repository-url.ts";
import { invalidField } from "../refusals.ts";
import type { CredentialUse, SandboxSpec } from "../../contract/spec.ts";
import type { CredentialDirectory, KnownCredential } from "./directory.ts";

export type BindOptions = {
  directory: CredentialDirectory;
  /** Who makes the sandbox: what they may not use, it does not get. */
  owner: JobOwner;
  /** The owner of whoever wrote the spec, where that is not who makes the sandbox of it. */
  author?: string | undefined;
  /** Where the APIs of agents are, by agent provider. */
  providerUrls: Readonly<Record<string, string>>;
};

/** Kinds that a request over HTTP can carry. */
const ADDABLE: ReadonlySet<string> = new Set(["pat", "basic", "oauth2", "api_key"]);

/**
 * The spec with the hosts of all its credentials. Only the owner of a credential says where it goes: in a spec of the
 * owner's own, for a sandbox of the owner's own, and otherwise by `hosts` of the metadata alone, over TLS alone. So
 * neither one who may use a credential, nor one whose workspace its owner launches, has it sent to a host of his own.
 *
 * Rejects with `credential_not_found` for one that the maker of the sandbox may not use; `config_validation_error` for one
 * that cannot be added to requests, or may not to these; and `not_configured` where there is no store of credentials.
 */
export async function bindCredentials(spec: SandboxSpec, options: BindOptions): Promise<SandboxSpec> {
  const { credentials: uses = [], gitRepos = [] } = spec;
  const known = new Map<string, KnownCredential>();
  for (const id of credentialIdsIn(spec)) known.set(id, await find(options, id));
  for (const [i, { credentialId, url }] of gitRepos.entries()) {
    const credential = credentialId === undefined ? undefined : known.get(credentialId);
    if (credential === undefined) continue;
    const field = `git_repos.${i}.credential_id`;
    checkKind(credential, field);
    checkBound(credential, [repositoryHost(url)], { field, options });
    if (!isFree(credential, options)) checkTls(url, field);
  }
  const bound = uses.map((use, i) => bind(spec, use, { known, field: `credentials.${i}`, options }));
  checkDistinct(bound);
  return uses.length === 0 ? spec : { ...spec, credentials: bound };
}

/**
 * The id of the credential with that label: of the caller's own, and only where none is, of those that it may use.
 * Rejects with `credential_not_found` where there is none, and `config_validation_error` where there are several.
 */
export async function idOfLabel(
  { directory, owner }: Pick<BindOptions, "directory" | "owner">,
  label: string,
  field: string,
): Promise<string> {
  const all = (await directory.list(owner)).filter((one) => one.label === label);
  const own = all.filter((one) => one.owner === ownerOf(owner));
  // Nobody changes what a label leads to by sharing another credential under it.
  const [found, ...others] = own.length > 0 ? own : all;
  if (found === undefined) throw notFound(`there is no credential with the label ${JSON.stringify(label)}`);
  if (others.length === 0) return found.id;
  throw invalidField(field, `${others.length + 1} credentials have that label: name it by its credential_id`);
}

type Binding = { known: ReadonlyMap<string, KnownCredential>; field: string; options: BindOptions };

function bind(spec: SandboxSpec, use: CredentialUse, { known, field, options }: Binding): CredentialUse {
  const credential = known.get(use.credentialId);
  if (credential === undefined) throw new Error("a credential that was looked up is not known");
  checkKind(credential, `${field}.credential_id`);
  const isAgents = use.envVar !== undefined && use.envVar === AGENTS.get(spec.agentProvider)?.apiKeyVariable;
  const provider = isAgents ? providerHost(spec, options) : undefined;
  if (isAgents && !isFree(credential, options))
    checkTls(options.providerUrls[spec.agentProvider] ?? "", `${field}.env_var`);
  if (isAgents && provider === undefined) {
    throw invalidField(`${field}.env_var`, "the operator says of no API of this agent (ENGINE_SANDBOX_PROVIDER_URLS)");
  }
  const hosts = hostsOf(use, provider) ?? metadataHosts(credential, `${field}.hosts`);
  if (hosts === undefined) {
    throw invalidField(`${field}.hosts`, "say which; neither the agent's provider nor the credential's metadata does");
  }
  if (provider !== undefined && !hosts.includes(provider)) {
    throw invalidField(`${field}.hosts`, `the agent's API is at ${provider}: it has to be among them`);
  }
  checkBound(credential, hosts, { field: `${field}.hosts`, options });
  return { ...use, hosts };
}

function hostsOf({ hosts }: CredentialUse, provider: string | undefined): readonly string[] | undefined {
  if (hosts.length > 0) return hosts;
  return provider === undefined ? undefined : [provider];
}

function providerHost({ agentProvider }: SandboxSpec, { providerUrls }: BindOptions): string | undefined {
  const url = providerUrls[agentProvider];
  return url === undefined ? undefined : canonicalHost(new URL(url).hostname);
}

async function find({ directory, owner }: BindOptions, id: string): Promise<KnownCredential> {
  try {
    return await directory.get(id, owner);
  } catch (error) {
    if (error instanceof EngineError && error.code === "not_found") throw notFound(error.message);
    throw error;
  }
}

function checkKind({ kind }: KnownCredential, field: string): void {
  if (ADDABLE.has(kind)) return;
  throw invalidField(
    field,
    `it is of the kind ${kind}; accepted are ${[...ADDABLE].join(", ")}, which requests can carry`,
  );
}

/** Its owner may have said what it is for: it goes nowhere else. Unless the owner wrote the spec, that must be said. */
function checkBound(
  credential: KnownCredential,
  hosts: readonly string[],
  { field, options }: { field: string; options: BindOptions },
): void {
  const own = metadataHosts(credential, field);
  if (own === undefined) {
    if (isFree(credential, options)) return;
    throw invalidField(
      field,
      "the credential is somebody else's, or this is: its owner must say in `hosts` of its metadata where it may go",
    );
  }
  const stray = hosts.find((host) => !own.includes(host));
  if (stray === undefined) return;
  throw invalidField(field, `by its metadata the credential is not for ${stray}, but for ${own.join(", ")}`);
}

/** Whether its owner makes the sandbox by a spec of his own. Of nobody's, which only admins may use, an admin does. */
function isFree(credential: KnownCredential, { owner, author = ownerOf(owner) }: BindOptions): boolean {
  return author === ownerOf(owner) && isOwnersOrNobodys(credential, author);
}

/** Whether the owner of a sandbox may have the credential sent to hosts that its metadata does not name. */
export function isOwnersOrNobodys({ owner }: Pick<KnownCredential, "owner">, ofSandbox: string): boolean {
  return owner === ofSandbox || owner === NO_OWNER;
}

/** Name servers are the maker's choice: without TLS a name says nothing of who is there. */
function checkTls(url: string, field: string): void {
  if (/^https:/i.test(url)) return;
  throw invalidField(field, "the credential is somebody else's, or this is: it goes over TLS alone");
}

function metadataHosts(credential: KnownCredential, field: string): string[] | undefined {
  const hosts = hostsInMetadata(credential);
  if (hosts !== "unreadable") return hosts;
  throw invalidField(field, "`hosts` of the credential's metadata has to be an array of exact names of hosts");
}

/** Where the credential may go, as its owner said; undefined where that is not said. */
export function hostsInMetadata({ metadata: { hosts } }: Pick<KnownCredential, "metadata">) {
  if (hosts === undefined) return undefined;
  const names = Array.isArray(hosts)
    ? hosts.map((one) => (typeof one === "string" ? canonicalHost(one) : undefined))
    : [];
  return names.length > 0 && names.every((name) => name !== undefined) ? names : "unreadable";
}

/** Which of them a request gets must be plain. */
function checkDistinct(uses: readonly CredentialUse[]): void {
  const taken = new Set<string>();
  for (const [i, { hosts }] of uses.entries()) {
    const twice = hosts.find((host) => taken.has(host));
    if (twice !== undefined) throw invalidField(`credentials.${i}.hosts`, `another one is bound to ${twice}`);
    for (const host of hosts) taken.add(host);
  }
}

function notFound(message: string): EngineError {
  return new EngineError("credential_not_found", message);
}
