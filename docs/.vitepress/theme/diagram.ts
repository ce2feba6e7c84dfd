// A Mermaid diagram. The library is part of the site and is loaded where a page has a diagram; before that, and
// without scripts, the page shows the diagram's source.
import type { Mermaid } from 'mermaid';
import { useData, withBase } from 'vitepress';
import { defineComponent, h, onMounted, ref, watch } from 'vue';

let count = 0;

export const Diagram = defineComponent({
  props: { source: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData();
    const source = decodeURIComponent(props.source);
    const svg = ref('');
    const draw = async () => {
      // As built by its authors: to bundle it again takes a minute, for the same files.
      const library = withBase('/mermaid/mermaid.esm.min.mjs');
      const { default: mermaid }: { default: Mermaid } = await import(/* @vite-ignore */ library);
      mermaid.initialize({
        startOnLoad: false,
        theme: isDark.value ? 'dark' : 'neutral',
        fontFamily: 'inherit',
        // A message's text is above the lines that it crosses.
        themeCSS: '.messageText { paint-order: stroke; stroke: var(--vp-c-bg); stroke-width: 6px; }',
        // Narrow: a diagram is as wide as the text beside it.
        sequence: { wrap: true, width: 110, actorMargin: 24, diagramMarginX: 0, mirrorActors: false },
      });
      svg.value = (await mermaid.render(`diagram-${count++}`, source)).svg;
    };
    onMounted(draw);
    watch(isDark, draw);
    return () =>
      svg.value === ''
        ? h('pre', { class: 'diagram' }, source)
        : h('div', { class: 'diagram', innerHTML: svg.value, tabindex: 0 });
  },
});
