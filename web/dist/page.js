document.getElementById("hec-root").textContent = document.getElementById("hec-page").textContent;
