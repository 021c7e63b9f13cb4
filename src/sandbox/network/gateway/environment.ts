import { PROXY_PORT, type SandboxSpec } from "../../contract/spec.ts";
import { GATEWAY_PATH } from "./paths.ts";

const GATEWAY = `http://127.0.0.1:${PROXY_PORT}${GATEWAY_PATH}`;

/** Where an agent finds the API of its model. */
export const agentBaseUrl: string = `${GATEWAY}agent`;

/** What variables of credentials hold inside. Programs that look whether there is one go on. */
const PLACEHOLDER = "added-outside-of-the-sandbox";

/**
 * Variables of a sandbox with credentials, none of which is secret: placeholders, and git's configuration that has it
 * ask the gateway for repositories that need one (git-config, `GIT_CONFIG_COUNT`). They go over those of the request.
 */
export function gatewayEnvironment({
  credentials = [],
  gitRepos = [],
  envVars,
}: Pick<SandboxSpec, "credentials" | "gitRepos" | "envVars">): Record<string, string> {
  const placeholders = credentials.flatMap(({ envVar }) => (envVar === undefined ? [] : [[envVar, PLACEHOLDER]]));
  return { ...Object.fromEntries(placeholders), ...gitConfiguration(gitRepos, countIn(envVars)) };
}

/** Counts on from what the request has of it. */
function gitConfiguration(gitRepos: NonNullable<SandboxSpec["gitRepos"]>, first: number): Record<string, string> {
  const entries = gitRepos.flatMap(({ url, credentialId }, place) =>
    credentialId === undefined ? [] : [{ url, place }],
  );
  if (entries.length === 0) return {};
  const pairs = entries.flatMap(({ url, place }, i) => [
    [`GIT_CONFIG_KEY_${first + i}`, `url.${GATEWAY}git/${place}/repo.insteadOf`],
    // It is a beginning: it stands for the URL with `.git` and without.
    [`GIT_CONFIG_VALUE_${first + i}`, url.replace(/\/+$/, "").replace(/\.git$/, "")],
  ]);
  return { GIT_CONFIG_COUNT: String(first + entries.length), ...Object.fromEntries(pairs) };
}

function countIn(envVars: Readonly<Record<string, string>>): number {
  const count = envVars["GIT_CONFIG_COUNT"] ?? "";
  return /^\d{1,4}$/.test(count) ? Number(count) : 0;
}
