/** Licences under which packages of others may be in a release: all allow it with no more than a notice. */
const ALLOWED: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "Unlicense",
]);

type Licensed = { name: string; version: string; license: string };

/** @throws Error that names every package whose licence is not in the list */
export function assertAllowed(packages: readonly Licensed[]): void {
  const refused = packages.filter(({ license }) => !isAllowed(license));
  if (refused.length === 0) return;
  const names = refused.map(({ name, version, license }) => `${name} ${version} (${license})`);
  throw new Error(
    `the licences of these packages are not allowed: ${names.join(", ")}; take others, or decide in scripts/release/licences.ts`,
  );
}

/**
 * Of an SPDX expression with `OR` one side is enough, with `AND` all must be good. Whatever else is in one (brackets
 * inside of others, exceptions, a file's name) is refused: somebody has to read it.
 */
export function isAllowed(expression: string): boolean {
  const bare = expression.replace(/^\(([^()]*)\)$/, "$1");
  if (bare.includes(" OR ")) return !bare.includes(" AND ") && bare.split(" OR ").some((one) => ALLOWED.has(one));
  return bare.split(" AND ").every((one) => ALLOWED.has(one));
}
