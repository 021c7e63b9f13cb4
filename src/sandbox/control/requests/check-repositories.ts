import { isAllowed } from "../../contract/host-names.ts";
import { invalidField } from "../refusals.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import { repositoryHost } from "../../contract/repository-url.ts";

/** Where repositories may be cloned from: rules of hosts, beside those of the sandbox, and whether without TLS. */
export type RepositoryRules = { hosts: readonly string[]; plainHttp: boolean };

/** Throws `config_validation_error` for a repository that no node would clone, and for such a source of a skill. */
export function checkRepositories(
  { gitRepos = [], skills = [], network }: Pick<SandboxSpec, "gitRepos" | "skills" | "network">,
  { hosts, plainHttp }: RepositoryRules,
  fields = { repositories: "git_repos", skills: "skills" },
): void {
  const repositories = gitRepos.map(({ url, credentialId }, i) => ({
    url,
    field: `${fields.repositories}.${i}.url`,
    credentialId,
  }));
  const sources = skills.map(({ source }, i) => ({
    url: source,
    field: `${fields.skills}.${i}.source`,
    credentialId: undefined,
  }));
  for (const { url, field, credentialId } of [...repositories, ...sources]) {
    const refuse = (why: string) => invalidField(field, why);
    if (url.startsWith("http:") && !plainHttp) throw refuse("accepted are https:// URLs");
    // With a credential it is reached by the gateway, and nothing else of its host.
    if (credentialId !== undefined || isAllowed(repositoryHost(url), [...hosts, ...network.allowedHosts])) continue;
    const known = hosts.length === 0 ? "" : ` (${hosts.join(", ")})`;
    throw refuse(`its host is neither one that the operator lets repositories come from${known}, nor in allowed_hosts`);
  }
}
