import type { Plugin } from "vite";

const FILE = /\/uplot\/dist\/uPlot\.esm\.js$/;
const OF_THE_BROWSER = "new Intl.NumberFormat(domEnv ? nav.language : 'en-US')";

/**
 * uPlot makes a format of numbers for the browser's language as soon as it is loaded, and fails where that is none: WebKitGTK
 * calls the language `C` where the system has no other. Pages write numbers in one way for everybody.
 */
export function chartLanguage(): Plugin {
  return {
    name: "chart-language",
    transform(code, id) {
      if (!FILE.test(id.replace(/[?#].*$/, ""))) return undefined;
      // A release of uPlot that does otherwise is to be looked at first.
      if (!code.includes(OF_THE_BROWSER)) throw new Error("uPlot makes its format of numbers in another way");
      return { code: code.replace(OF_THE_BROWSER, "new Intl.NumberFormat('en-US')"), map: null };
    },
  };
}
