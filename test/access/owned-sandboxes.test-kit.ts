import type { OwnedRoute } from "./owned.test-kit.ts";

/** Routes of sandboxes, nodes, sessions, workspaces and images that name or list records with owners. */
export const SANDBOX_ROUTES: Readonly<Record<string, OwnedRoute>> = {};

/** Those that do neither: why. */
export const SANDBOX_ROUTES_WITHOUT: Readonly<Record<string, string>> = {};
