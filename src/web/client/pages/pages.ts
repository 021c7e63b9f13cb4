import { lazyPart } from "../base/lazy-part.ts";
import type { Page } from "./page.ts";

/**
 * Every page of the shell: THE list. A new page is its folder and an entry here; the navigation, the palette and the keys
 * take theirs from it, in this order. Pages that are to come: sources, jobs,
 * sandboxes (Operations), memory, agent (Knowledge), users and settings (Administration).
 */
export const PAGES: readonly Page[] = [
  {
    path: "",
    title: "Overview",
    place: { section: "Data", icon: "home" },
    keys: "g h",
    part: lazyPart(async () => (await import("./home/home.tsx")).HomePage),
  },
  {
    path: "query",
    title: "Query",
    place: { section: "Data", icon: "query" },
    keys: "g q",
    part: lazyPart(async () => (await import("./query/query.tsx")).QueryPage),
  },
  {
    path: "explore",
    title: "Explore",
    place: { section: "Data", icon: "explore" },
    keys: "g e",
    part: lazyPart(async () => (await import("./explore/explore.tsx")).ExplorePage),
  },
  {
    path: "catalog",
    title: "Catalog",
    place: { section: "Data", icon: "catalog" },
    keys: "g c",
    part: lazyPart(async () => (await import("./catalog/catalog.tsx")).CatalogPage),
  },
  {
    path: "dashboards",
    title: "Dashboards",
    place: { section: "Data", icon: "dashboards" },
    keys: "g d",
    part: lazyPart(async () => (await import("./dashboards/dashboards.tsx")).DashboardsPage),
  },
  {
    path: "dashboards/:id",
    title: "Dashboard",
    part: lazyPart(async () => (await import("./dashboards/dashboard.tsx")).DashboardPage),
  },
];
