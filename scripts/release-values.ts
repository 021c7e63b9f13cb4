/** The variables of a build of a release: who signs releases, and where they are published (docs/releases.md). */
const NAMES = ["ENGINE_RELEASE_KEYS", "ENGINE_RELEASE_URL"] as const;

/** Those that are set. The sources declare them by the same names, and the bundle gets them as constants. */
export function releaseValues(env: NodeJS.ProcessEnv): Partial<Record<(typeof NAMES)[number], string>> {
  return Object.fromEntries(NAMES.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
}
