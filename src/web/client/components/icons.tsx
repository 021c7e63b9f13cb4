import type { JSX } from "preact";

/** Lines on a field of 20 by 20, drawn in the colour of the text around them. */
const PATHS = {
  home: "M3 9.5 10 3.5l7 6M5 8.5V16.5h10V8.5M8.2 16.5v-4.6h3.6v4.6",
  query: "M3.5 4.5h13v11h-13zM6.2 8l2.3 2-2.3 2M10.5 12.3h3.4",
  explore: "M9 3.8a5.2 5.2 0 1 0 0 10.4A5.2 5.2 0 0 0 9 3.8M12.8 12.8l3.7 3.7",
  catalog:
    "M4 5.5c0-1.2 2.7-2.2 6-2.2s6 1 6 2.2-2.7 2.2-6 2.2-6-1-6-2.2M4 5.5v9c0 1.2 2.7 2.2 6 2.2s6-1 6-2.2v-9M4 10c0 1.2 2.7 2.2 6 2.2s6-1 6-2.2",
  dashboards: "M3.5 3.5h5.5v7h-5.5zM11 3.5h5.5v4H11zM11 9.5h5.5v7H11zM3.5 12.5h5.5v4h-5.5z",
  table: "M3.5 4.5h13v11h-13zM3.5 8.2h13M8 8.2v7.3",
  user: "M10 4a2.8 2.8 0 1 0 0 5.6A2.8 2.8 0 0 0 10 4M4.5 16.2c.6-2.8 2.8-4.2 5.5-4.2s4.9 1.4 5.5 4.2",
  signOut: "M8.5 3.8h-4v12.4h4M12.5 6.8l3.2 3.2-3.2 3.2M15.5 10H8",
  sun: "M10 6.8a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4M10 2.5v1.6M10 15.9v1.6M2.5 10h1.6M15.9 10h1.6M4.7 4.7l1.1 1.1M14.2 14.2l1.1 1.1M4.7 15.3l1.1-1.1M14.2 5.8l1.1-1.1",
  moon: "M16 11.6A6.4 6.4 0 0 1 8.4 4a6.4 6.4 0 1 0 7.6 7.6z",
  screen: "M3 4h14v9.5H3zM7.5 16.5h5M10 13.5v3",
  copy: "M7 7h9v9H7zM4 13V4h9",
  check: "M4 10.5 8.2 14.7 16 6",
  close: "M5 5l10 10M15 5 5 15",
  warning: "M10 3.5 17.3 16H2.7zM10 8.2v3.6M10 13.7v.4",
  info: "M10 3.2a6.8 6.8 0 1 0 0 13.6 6.8 6.8 0 0 0 0-13.6M10 9.2v4.2M10 6.6v.4",
  down: "M5.5 8l4.5 4.5L14.5 8",
  right: "M8 5.5l4.5 4.5L8 14.5",
  external: "M8 4.5H4.5v11h11V12M11 4h5v5M16 4l-7 7",
  refresh: "M15.8 8.2A6.2 6.2 0 1 0 16 12M16.2 3.8v4.5h-4.5",
  play: "M6 4.2v11.6L15.5 10z",
  stop: "M5.5 5.5h9v9h-9z",
  plus: "M10 4.5v11M4.5 10h11",
  trash: "M4 6h12M8 6V4h4v2M5.5 6l.7 10.5h7.6L14.5 6M8.5 9v4.5M11.5 9v4.5",
  key: "M12.8 4a3.6 3.6 0 1 0 0 7.2 3.6 3.6 0 0 0 0-7.2M10.2 10.2 4 16.4M5.8 14.6l1.9 1.9",
  keyboard: "M2.5 5.5h15v9h-15zM5.5 8.2h.1M8.5 8.2h.1M11.5 8.2h.1M14.5 8.2h.1M6.5 11.8h7",
  book: "M10 5.5C8.3 4.2 6 3.8 3.5 4v11.3c2.5-.2 4.8.2 6.5 1.5 1.7-1.3 4-1.7 6.5-1.5V4c-2.5-.2-4.8.2-6.5 1.5zM10 5.5v11.3",
  more: "M5 10h.1M10 10h.1M15 10h.1",
} as const;

export type IconName = keyof typeof PATHS;

/** An icon beside a text that says the same, so it has no name of its own. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
