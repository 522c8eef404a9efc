import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// The sources of the client need no installation of their own: its dependency is the console's copy.
const oneCopy: Plugin = {
  name: "one-copy",
  enforce: "pre",
  resolveId(source) {
    return source.startsWith("@bufbuild/") ? this.resolve(source, here("src/main.tsx"), { skipSelf: true }) : null;
  },
};

export default defineConfig({
  base: "./",
  plugins: [oneCopy],
  resolve: {
    alias: [
      { find: /^@nodewise\/client$/, replacement: here("../typescript/src/browser.ts") },
      { find: /^@nodewise\/client\/(v1|v1beta1)$/, replacement: here("../typescript/src/$1.ts") },
    ],
  },
  // Fixed names keep a rebuild's difference small; the server sends entity tags instead of names that change.
  build: {
    outDir: "nodewise_console/static",
    emptyOutDir: true,
    // These have light-dark(): what replaces it for older ones does not follow the choice of colours.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: { polyfill: false },
    rollupOptions: { output: { entryFileNames: "console.js", assetFileNames: "console.[ext]" } },
  },
});
