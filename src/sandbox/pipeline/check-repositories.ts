import { isAllowed } from "../egress/host-names.ts";
import { invalidField } from "../scheduler/refusals.ts";
import type { SandboxSpec } from "../spec.ts";
import { repositoryHost } from "./repository-url.ts";

/** Where repositories may be cloned from: rules of hosts, beside those of the sandbox, and whether without TLS. */
export type RepositoryRules = { hosts: readonly string[]; plainHttp: boolean };

/** Throws `config_validation_error` for a repository that no node would clone. */
export function checkRepositories(
  { gitRepos = [], network }: Pick<SandboxSpec, "gitRepos" | "network">,
  { hosts, plainHttp }: RepositoryRules,
  field = "git_repos",
): void {
  for (const [i, { url }] of gitRepos.entries()) {
    const refuse = (why: string) => invalidField(`${field}.${i}.url`, why);
    if (url.startsWith("http:") && !plainHttp) throw refuse("accepted are https:// URLs");
    if (isAllowed(repositoryHost(url), [...hosts, ...network.allowedHosts])) continue;
    const known = hosts.length === 0 ? "" : ` (${hosts.join(", ")})`;
    throw refuse(`its host is neither one that the operator lets repositories come from${known}, nor in allowed_hosts`);
  }
}
