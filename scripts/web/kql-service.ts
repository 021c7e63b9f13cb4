import type { Plugin } from "vite";

const FILES = /\/@kusto\/language-service-next\/(bridge|Kusto\.Language\.Bridge)\.min\.js$/;

/**
 * What in the service's runtime makes code of text, in three places: lambdas that are written as text, which nothing in the
 * service uses, and a way to the global object where there is no `self`. The policy of the pages would refuse both.
 */
const CODE_OF_TEXT = /new Function\([^()]*\)|Function\("return this"\)\(\)/g;
const PLACES: Readonly<Record<string, number>> = { bridge: 3, "Kusto.Language.Bridge": 0 };

/**
 * Makes modules of the KQL language service, which is two scripts that define globals. They are functions of the global
 * object, hide what would make them modules of Node, and hold nothing that makes code of text.
 */
export function kqlService(): Plugin {
  return {
    name: "kql-service",
    enforce: "pre",
    transform(code, id) {
      const [, file = ""] = FILES.exec(id.replace(/[?#].*$/, "")) ?? [];
      if (file === "") return undefined;
      let places = 0;
      const bare = code.replaceAll(CODE_OF_TEXT, () => {
        places++;
        return '(()=>{throw new Error("code is not made of text here")})()';
      });
      // A release of the service with other ones is to be looked at first.
      if (places !== PLACES[file] || /\bnew Function\b|\bFunction\(|[^.\w$]eval\(/.test(bare)) {
        throw new Error(`${file}.min.js makes code of text in ${places} known places, and maybe in others`);
      }
      return { code: `(function(module,exports,require,define){${bare}\n}).call(globalThis);\nexport {};`, map: null };
    },
  };
}
