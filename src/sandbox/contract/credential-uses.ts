import { repositoryHost } from "./repository-url.ts";
import type { SandboxSpec } from "./spec.ts";

/** The hosts that a credential is sent to by the gateway of a sandbox with that spec. */
export function boundHosts({ credentials = [], gitRepos = [] }: SandboxSpec, id: string): string[] {
  const ofRepositories = gitRepos.flatMap(({ credentialId, url }) => (credentialId === id ? repositoryHost(url) : []));
  return [...credentials.flatMap(({ credentialId, hosts }) => (credentialId === id ? hosts : [])), ...ofRepositories];
}

/** Of all credentials that a sandbox uses, each once. */
export function credentialIdsIn({ credentials = [], gitRepos = [] }: SandboxSpec): string[] {
  const ofRepositories = gitRepos.flatMap(({ credentialId }) => credentialId ?? []);
  return [...new Set([...credentials.map(({ credentialId }) => credentialId), ...ofRepositories])];
}
