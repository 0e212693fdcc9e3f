"use strict";

// Copying: buttons appear where this script runs.
const said = document.getElementById("said");

async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
}

for (const button of document.querySelectorAll("button.copy")) {
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await copy(document.getElementById(button.dataset.copies));
    button.textContent = "Copied";
    said.textContent = `Copied the ${button.dataset.name}`;
    setTimeout(() => { button.textContent = label; said.textContent = ""; }, 2000);
  });
}

// Enlarging: a dialog, which Escape, its button and a click beside it close.
const enlarged = document.getElementById("enlarged");

for (const tile of document.querySelectorAll("button.tile")) {
  const picture = tile.querySelector("img");
  tile.setAttribute("aria-haspopup", "dialog");
  tile.addEventListener("click", () => {
    const large = picture.cloneNode();
    large.removeAttribute("width");
    document.getElementById("enlarged-picture").replaceChildren(large);
    document.getElementById("enlarged-name").textContent = picture.alt;
    document.getElementById("enlarged-weights").textContent =
      "weights" in tile.dataset ? `Largest label weights: ${tile.dataset.weights}` : "";
    enlarged.showModal();
  });
}

enlarged.addEventListener("click", (event) => {
  if (event.target === enlarged) enlarged.close();
});
